package stat_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

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
	r, err := stat.Regress(y, predictors, stat.RegressOptions{})
	require.NoError(t, err)
	require.Equal(t, 16, r.N)
	require.Equal(t, 9, r.Freedom)
	require.InEpsilon(t, 0.995479004577296, r.R2, 1e-9)
	require.InEpsilon(t, 304.854073561965, r.Sigma, 1e-7)
	require.InEpsilon(t, 330.285339234588, r.F, 1e-7)
	require.InEpsilon(t, distuv.F{D1: 6, D2: 9}.Survival(330.285339234588), r.P, 1e-5)
	require.InEpsilon(t, 43275, r.Condition, 1e-3) // Belsley, Kuh and Welsch
	require.Contains(t, r.Warnings[0], "condition number 43275")
	student := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: 9}
	for j, want := range certified {
		term := r.Terms[j]
		require.InEpsilon(t, want[0], term.Coefficient, 1e-7, term.Name)
		require.InEpsilon(t, want[1], term.StdError, 1e-7, term.Name)
		require.InEpsilon(t, want[0]/want[1], term.T, 1e-6, term.Name)
		require.InEpsilon(t, 2*student.Survival(math.Abs(want[0]/want[1])), term.P, 1e-5, term.Name)
		require.InEpsilon(t, want[0]+2.26215716*want[1], term.High, 1e-6, term.Name)
	}
	require.InDelta(t, r.R2, shared(r), 1e-6)
}

// R: summary(lm(mpg ~ wt, mtcars)) and lmtest::bptest of it.
func TestRegressCars(t *testing.T) {
	r, err := stat.Regress(mpg, []stat.Predictor{{Name: "wt", Values: weight}}, stat.RegressOptions{})
	require.NoError(t, err)
	slope := r.Term("wt")
	require.InDelta(t, 37.2851, r.Term(stat.Intercept).Coefficient, 5e-5)
	require.InDelta(t, -5.3445, slope.Coefficient, 5e-5)
	require.InDelta(t, 0.5591, slope.StdError, 5e-5)
	require.InDelta(t, -9.559, slope.T, 5e-4)
	require.InDelta(t, -6.486308, slope.Low, 1e-6)
	require.InDelta(t, -4.202635, slope.High, 1e-6)
	require.InDelta(t, 0.7528, r.R2, 5e-5)
	require.InDelta(t, 0.7446, r.AdjustedR2, 5e-5)
	require.InDelta(t, 0.8406, r.SpreadP, 5e-5)
	require.Empty(t, r.Warnings)
	require.Nil(t, r.Term("none"))

	// With one predictor, beta is the correlation and the share all there is.
	require.InDelta(t, -0.8676594, slope.Beta, 1e-7)
	require.InDelta(t, r.R2, slope.Share, 1e-12)
}

// The robust standard error of a single slope has a closed form.
func TestRegressRobust(t *testing.T) {
	predictor := []stat.Predictor{{Name: "wt", Values: weight}}
	plain, err := stat.Regress(mpg, predictor, stat.RegressOptions{})
	require.NoError(t, err)
	robust, err := stat.Regress(mpg, predictor, stat.RegressOptions{Robust: true})
	require.NoError(t, err)
	a, b := plain.Terms[0].Coefficient, plain.Terms[1].Coefficient
	require.Equal(t, b, robust.Terms[1].Coefficient)
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
	require.InEpsilon(t, math.Sqrt(meat)/squares, robust.Terms[1].StdError, 1e-9)
}

func shared(r *stat.Regression) (sum float64) {
	for _, term := range r.Terms {
		sum += term.Share
	}
	return sum
}

// design is a full factorial with a response that is known but for its noise.
func design(seed uint64, f func(attributes, payload, entities float64) float64) (y []float64, predictors []stat.Predictor) {
	points := stat.Factorial(seed, 5, []float64{2, 8, 24}, []float64{256, 5120, 51200}, []float64{10, 40, 120})
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
// 1 ns a byte.
func TestRegressInteractions(t *testing.T) {
	y, predictors := design(7, func(a, p, e float64) float64 { return 5 + e*(0.02+0.01*a+1e-6*p) })
	interactions := [][]string{{"attributes", "entities"}, {"payload", "entities"}}
	r, err := stat.Regress(y, predictors, stat.RegressOptions{Interactions: interactions, Robust: true})
	require.NoError(t, err)
	for name, want := range map[string]float64{
		"entities": 0.02, "attributes×entities": 0.01, "payload×entities": 1e-6, "attributes": 0, "payload": 0,
	} {
		term := r.Term(name)
		require.NotNil(t, term, name)
		require.True(t, term.Low < want && want < term.High, "%s: %+v", name, term)
	}
	require.Greater(t, r.Term("attributes×entities").Share, r.Term("payload×entities").Share)
	require.InDelta(t, r.R2, shared(r), 1e-9)

	plain, err := stat.Regress(y, predictors, stat.RegressOptions{Interactions: interactions})
	require.NoError(t, err)
	require.Less(t, plain.SpreadP, 0.05)
	require.Contains(t, fmt.Sprint(plain.Warnings), "need robust standard errors")
}

func TestRegressLog(t *testing.T) {
	y, predictors := design(3, func(a, p, e float64) float64 { return 0.3 * math.Sqrt(a) * e })
	r, err := stat.Regress(y, predictors, stat.RegressOptions{Log: true})
	require.NoError(t, err)
	require.InDelta(t, 0.5, r.Term("attributes").Coefficient, 0.02)
	require.InDelta(t, 1, r.Term("entities").Coefficient, 0.02)
	require.Greater(t, r.Term("payload").P, 0.05)
	require.InDelta(t, math.Log(0.3), r.Term(stat.Intercept).Coefficient, 0.1)

	// A complete design is orthogonal: shares are squared correlations.
	for _, term := range r.Terms[1:] {
		require.InDelta(t, term.Beta*term.Beta, term.Share, 1e-9)
	}
}

// Two copies of a cause share what it explains, where the order of entry would
// give it all to the first.
func TestSharesOfTwins(t *testing.T) {
	twin := make([]float64, len(weight))
	for i, w := range weight {
		twin[i] = w + 0.01*float64(i%3)
	}
	r, err := stat.Regress(mpg, []stat.Predictor{{Name: "a", Values: weight}, {Name: "b", Values: twin}}, stat.RegressOptions{})
	require.NoError(t, err)
	require.InDelta(t, r.Term("a").Share, r.Term("b").Share, 0.05)
	require.InDelta(t, r.R2, shared(r), 1e-9)
	require.NotEmpty(t, r.Warnings)
}

func TestRegressErrors(t *testing.T) {
	y := []float64{1, 2, 4, 7, 9}
	x := []float64{1, 2, 3, 5, 4}
	twice := []float64{2, 4, 6, 10, 8}
	tests := []struct {
		name       string
		y          []float64
		predictors []stat.Predictor
		options    stat.RegressOptions
		is         error
		want       string
	}{
		{"none", y, nil, stat.RegressOptions{}, nil, "no predictors"},
		{"lengths", y, []stat.Predictor{{Name: "x", Values: x[:4]}}, stat.RegressOptions{}, nil, `"x" has 4 values for 5`},
		{"few", y[:2], []stat.Predictor{{Name: "x", Values: x[:2]}}, stat.RegressOptions{}, stat.ErrTooFew, "2 observations for 2 terms"},
		{"constant", y, []stat.Predictor{{Name: "x", Values: []float64{1, 1, 1, 1, 1}}}, stat.RegressOptions{}, stat.ErrConstant, "x: "},
		{"response", []float64{3, 3, 3, 3, 3}, []stat.Predictor{{Name: "x", Values: x}}, stat.RegressOptions{}, stat.ErrConstant, "response"},
		{"dependent", y, []stat.Predictor{{Name: "x", Values: x}, {Name: "z", Values: twice}}, stat.RegressOptions{}, stat.ErrDependent, "z is a combination"},
		{"log", y, []stat.Predictor{{Name: "x", Values: []float64{0, 1, 2, 3, 4}}}, stat.RegressOptions{Log: true}, nil, "x has the value 0"},
		{"NaN", y, []stat.Predictor{{Name: "x", Values: []float64{0, 1, 2, math.NaN(), 4}}}, stat.RegressOptions{}, nil, "NaN"},
		{"interaction", y, []stat.Predictor{{Name: "x", Values: x}}, stat.RegressOptions{Interactions: [][]string{{"x", "q"}}}, nil, `no predictor "q"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := stat.Regress(tt.y, tt.predictors, tt.options)
			require.ErrorContains(t, err, tt.want)
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
		})
	}
}

// The order of observations does not matter; another unit scales coefficients
// and leaves what is said about them.
func TestRegressInvariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(8, 30).Draw(t, "n")
		x, z, y := sample(t, "x", n), sample(t, "z", n), sample(t, "y", n)
		order := rapid.Permutation(indexes(n)).Draw(t, "order")
		scale := rapid.Float64Range(0.001, 1000).Draw(t, "scale")
		px, pz, py := make([]float64, n), make([]float64, n), make([]float64, n)
		for to, from := range order {
			px[to], pz[to], py[to] = scale*x[from], z[from], y[from]
		}
		a, err := stat.Regress(y, []stat.Predictor{{Name: "x", Values: x}, {Name: "z", Values: z}}, stat.RegressOptions{})
		require.NoError(t, err)
		b, err := stat.Regress(py, []stat.Predictor{{Name: "x", Values: px}, {Name: "z", Values: pz}}, stat.RegressOptions{})
		require.NoError(t, err)
		near := func(want, got, unit float64) { require.InDelta(t, want, got, 1e-6*(1+math.Abs(unit))) }
		near(a.R2, b.R2, 1)
		near(a.Terms[1].Coefficient, scale*b.Terms[1].Coefficient, a.Terms[1].Coefficient)
		near(a.Terms[2].Coefficient, b.Terms[2].Coefficient, a.Terms[2].Coefficient)
		near(a.Terms[1].T, b.Terms[1].T, a.Terms[1].T)
		near(a.Terms[1].Share, b.Terms[1].Share, 1)
		near(a.Terms[1].Beta, b.Terms[1].Beta, 1)
		require.True(t, a.R2 >= 0 && a.R2 <= 1 && a.P >= 0 && a.P <= 1, "%+v", a)
	})
}
