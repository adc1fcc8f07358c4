package stat_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/stat"
)

func longleyModel() ([]float64, []stat.Predictor) {
	var predictors []stat.Predictor
	for j := 1; j <= 6; j++ {
		predictors = append(predictors, stat.Predictor{Name: fmt.Sprintf("x%d", j), Values: column(longley, j)})
	}
	return column(longley, 0), predictors
}

func TestRegressLongley(t *testing.T) {
	y, predictors := longleyModel()
	r, err := stat.Regress(y, predictors)
	require.NoError(t, err)
	require.Equal(t, 16, r.N)
	require.InEpsilon(t, 0.995479004577296, r.R2, 1e-9)
	for j, want := range certified {
		require.InEpsilon(t, want, r.Terms[j].Coefficient, 1e-7, r.Terms[j].Name)
	}
}

// The coefficients are those of R: summary(lm(mpg ~ wt, mtcars)), and the robust
// standard error of a single slope has a closed form.
func TestRegressCars(t *testing.T) {
	r, err := stat.Regress(mpg, []stat.Predictor{{Name: "wt", Values: weight}})
	require.NoError(t, err)
	require.InDelta(t, 37.2851, r.Term(stat.Intercept).Coefficient, 5e-5)
	require.InDelta(t, -5.3445, r.Term("wt").Coefficient, 5e-5)
	require.InDelta(t, 0.7528, r.R2, 5e-5)
	require.InDelta(t, r.R2, r.Term("wt").Share, 1e-12)
	require.Nil(t, r.Term("none"))

	a, b := r.Terms[0].Coefficient, r.Terms[1].Coefficient
	var mean, squares, meat float64
	for _, x := range weight {
		mean += x / float64(len(weight))
	}
	for _, x := range weight {
		squares += (x - mean) * (x - mean)
	}
	for i, x := range weight {
		left := 1 - 1/float64(len(weight)) - (x-mean)*(x-mean)/squares
		e := (mpg[i] - a - b*x) / left
		meat += (x - mean) * (x - mean) * e * e
	}
	half := 2.0422725 * math.Sqrt(meat) / squares // t of 30 degrees of freedom
	require.InEpsilon(t, b-half, r.Terms[1].Low, 1e-8)
	require.InEpsilon(t, b+half, r.Terms[1].High, 1e-8)
}

func shared(r *stat.Regression) (sum float64) {
	for _, term := range r.Terms {
		sum += term.Share
	}
	return sum
}

// design is a full factorial with a response that is known but for its noise.
func design(seed uint64, f func(attributes, payload, entities float64) float64) (y []float64, predictors []stat.Predictor) {
	levels := [3][]float64{{2, 8, 24}, {256, 5120, 51200}, {10, 40, 120}}
	var points [][]float64
	for i := range 5 * 27 {
		points = append(points, []float64{levels[0][i%3], levels[1][i/3%3], levels[2][i/9%3]})
	}
	random := rand.New(rand.NewPCG(seed, 1))
	for _, p := range points {
		y = append(y, f(p[0], p[1], p[2])*(1+0.05*random.NormFloat64()))
	}
	return y, []stat.Predictor{
		{Name: "attributes", Values: column(points, 0)}, {Name: "payload", Values: column(points, 1)},
		{Name: "entities", Values: column(points, 2)},
	}
}

// A commit that takes 5 ms, and for each entity 20 µs, 10 µs an attribute and
// 1 ns a byte: what is written in all explains it.
func TestRegressDesign(t *testing.T) {
	y, predictors := design(7, func(a, p, e float64) float64 { return 5 + e*(0.02+0.01*a+1e-6*p) })
	entities := predictors[2].Values
	for _, p := range predictors[:2] {
		for i := range p.Values {
			p.Values[i] *= entities[i]
		}
	}
	r, err := stat.Regress(y, predictors)
	require.NoError(t, err)
	for name, want := range map[string]float64{stat.Intercept: 5, "entities": 0.02, "attributes": 0.01, "payload": 1e-6} {
		term := r.Term(name)
		require.NotNil(t, term, name)
		require.True(t, term.Low < want && want < term.High, "%s: %+v", name, term)
	}
	require.Greater(t, r.Term("attributes").Share, r.Term("payload").Share)
	require.InDelta(t, r.R2, shared(r), 1e-9)
}

func TestRegressErrors(t *testing.T) {
	y := []float64{1, 2, 4, 7, 9}
	x := []float64{1, 2, 3, 5, 4}
	twice := []float64{2, 4, 6, 10, 8}
	tests := []struct {
		name       string
		y          []float64
		predictors []stat.Predictor
		is         error
		want       string
	}{
		{"lengths", y, []stat.Predictor{{Name: "x", Values: x[:4]}}, nil, `x has 4 values for 5`},
		{"few", y[:2], []stat.Predictor{{Name: "x", Values: x[:2]}}, stat.ErrTooFew, "2 observations for 2 terms"},
		{"constant", y, []stat.Predictor{{Name: "x", Values: []float64{1, 1, 1, 1, 1}}}, stat.ErrConstant, "x: "},
		{"response", []float64{3, 3, 3, 3, 3}, []stat.Predictor{{Name: "x", Values: x}}, stat.ErrConstant, "response"},
		{"dependent", y, []stat.Predictor{{Name: "x", Values: x}, {Name: "z", Values: twice}}, stat.ErrDependent, "regression: "},
		{"NaN", y, []stat.Predictor{{Name: "x", Values: []float64{0, 1, 2, math.NaN(), 4}}}, stat.ErrDependent, "regression: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := stat.Regress(tt.y, tt.predictors)
			require.ErrorContains(t, err, tt.want)
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
		})
	}
}
