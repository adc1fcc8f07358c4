package stat

import (
	"fmt"
	"math"
)

// PowerLaw is y = Factor · x^Exponent, a line between logarithms. An exponent of
// 0 is no growth, 1 is growth in proportion.
type PowerLaw struct {
	Exponent float64 `json:"exponent"`
	Low      float64 `json:"low"`  // of the exponent's 95 % interval
	High     float64 `json:"high"` // of the exponent's 95 % interval
	Factor   float64 `json:"factor"`
	R2       float64 `json:"r2"` // part of the variance of log y that the line explains
	P        float64 `json:"p"`  // of no growth
	N        int     `json:"n"`

	meanX, squaresX, sigma float64 // of log x; of the residuals
}

// FitPowerLaw fits a power law by least squares of log y over log x, as for the
// time of a commit over the size of the data. All values must be positive. It
// returns ErrTooFew for fewer than 3 points, which leave nothing to take the
// interval from, and ErrConstant when x does not vary.
func FitPowerLaw(x, y []float64) (PowerLaw, error) {
	r, err := Regress(y, []Predictor{{Name: "x", Values: x}}, RegressOptions{Log: true})
	if err != nil {
		return PowerLaw{}, fmt.Errorf("power law: %w", err)
	}
	t := r.Terms[1]
	p := PowerLaw{
		Exponent: t.Coefficient, Low: t.Low, High: t.High, Factor: math.Exp(r.Terms[0].Coefficient),
		R2: r.R2, P: t.P, N: r.N, sigma: r.Sigma,
	}
	for _, v := range x {
		p.meanX += math.Log(v) / float64(len(x))
	}
	for _, v := range x {
		d := math.Log(v) - p.meanX
		p.squaresX += d * d
	}
	return p, nil
}

// Estimate is a figure with its interval.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`  // of the 95 % interval
	High  float64 `json:"high"` // of the 95 % interval
	N     int     `json:"n"`    // observations
}

// At returns the value at x, with the 95 % interval of one more observation
// there. Far from what was measured it holds only if the law does.
func (p PowerLaw) At(x float64) Estimate {
	mid := math.Log(p.Factor) + p.Exponent*math.Log(x)
	n, d := float64(p.N), math.Log(x)-p.meanX
	half := tQuantile(1-Alpha/2, n-2) * p.sigma * math.Sqrt(1+1/n+d*d/p.squaresX)
	return Estimate{Value: math.Exp(mid), Low: math.Exp(mid - half), High: math.Exp(mid + half), N: p.N}
}
