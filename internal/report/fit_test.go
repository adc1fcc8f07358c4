package report

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"
)

// longley is NIST's reference data of that name: the response is total employment, the predictors are
// nearly dependent, and the certified coefficients, the intercept left out, have 15 digits.
var (
	longley = [][]float64{
		{60323, 61122, 60171, 61187, 63221, 63639, 64989, 63761, 66019, 67857, 68169, 66513, 68655, 69564, 69331, 70551},
		{83.0, 88.5, 88.2, 89.5, 96.2, 98.1, 99.0, 100.0, 101.2, 104.6, 108.4, 110.8, 112.6, 114.2, 115.7, 116.9},
		{234289, 259426, 258054, 284599, 328975, 346999, 365385, 363112, 397469, 419180, 442769, 444546, 482704, 502601, 518173, 554894},
		{2356, 2325, 3682, 3351, 2099, 1932, 1870, 3578, 2904, 2822, 2936, 4681, 3813, 3931, 4806, 4007},
		{1590, 1456, 1616, 1650, 3099, 3594, 3547, 3350, 3048, 2857, 2798, 2637, 2552, 2514, 2572, 2827},
		{107608, 108632, 109773, 110929, 112075, 113270, 115094, 116219, 117388, 118734, 120445, 121950, 123366, 125368, 127852, 130081},
		{1947, 1948, 1949, 1950, 1951, 1952, 1953, 1954, 1955, 1956, 1957, 1958, 1959, 1960, 1961, 1962},
	}
	certified = []float64{15.0618722713733, -0.358191792925910e-01, -2.02022980381683, -1.03322686717359, -0.511041056535807e-01, 1829.15146461355}
)

func TestRegressLongley(t *testing.T) {
	terms, r2 := regress(longley[0], longley[1:])
	require.InEpsilon(t, 0.995479004577296, r2, 1e-9)
	for i, want := range certified {
		require.InEpsilon(t, want, terms[i].coefficient, 1e-7)
	}
}

// Miles a gallon over the weight of the 32 cars of R's mtcars: the slope is that of R, and its robust
// standard error has a closed form.
func TestRegressCars(t *testing.T) {
	mpg := []float64{
		21, 21, 22.8, 21.4, 18.7, 18.1, 14.3, 24.4, 22.8, 19.2, 17.8, 16.4, 17.3, 15.2, 10.4, 10.4,
		14.7, 32.4, 30.4, 33.9, 21.5, 15.5, 15.2, 13.3, 19.2, 27.3, 26, 30.4, 15.8, 19.7, 15, 21.4,
	}
	weight := []float64{
		2.620, 2.875, 2.320, 3.215, 3.440, 3.460, 3.570, 3.190, 3.150, 3.440, 3.440, 4.070, 3.730, 3.780, 5.250, 5.424,
		5.345, 2.200, 1.615, 1.835, 2.465, 3.520, 3.435, 3.840, 3.845, 1.935, 2.140, 1.513, 3.170, 2.770, 3.570, 2.780,
	}
	terms, r2 := regress(mpg, [][]float64{weight})
	slope := terms[0]
	require.InDelta(t, -5.3445, slope.coefficient, 5e-5)
	require.InDelta(t, 0.7528, r2, 5e-5)

	mean, squares, meat := stat.Mean(weight, nil), 0.0, 0.0
	intercept := stat.Mean(mpg, nil) - slope.coefficient*mean
	for _, x := range weight {
		squares += (x - mean) * (x - mean)
	}
	for i, x := range weight {
		left := 1 - 1/float64(len(weight)) - (x-mean)*(x-mean)/squares
		e := (mpg[i] - intercept - slope.coefficient*x) / left
		meat += (x - mean) * (x - mean) * e * e
	}
	half := 2.0422725 * math.Sqrt(meat) / squares // t of 30 degrees of freedom
	require.InEpsilon(t, slope.coefficient-half, slope.low, 1e-8)
	require.InEpsilon(t, slope.coefficient+half, slope.high, 1e-8)
}

// Commits of a full factorial that take 5 ms, and for each entity 20 µs, 10 µs an attribute and 1 ns a
// byte, with noise.
func TestRegressDesign(t *testing.T) {
	random, of, y := rand.New(rand.NewPCG(7, 1)), make([][]float64, 3), []float64(nil)
	for i := range 5 * 27 {
		attributes, payload, entities := []float64{2, 8, 24}[i%3], []float64{256, 5120, 51200}[i/3%3], []float64{10, 40, 120}[i/9%3]
		y = append(y, (5+entities*(0.02+0.01*attributes+1e-6*payload))*(1+0.05*random.NormFloat64()))
		for j, v := range []float64{attributes * entities, payload * entities, entities} {
			of[j] = append(of[j], v)
		}
	}
	terms, _ := regress(y, of)
	for j, want := range []float64{0.01, 1e-6, 0.02} {
		require.True(t, terms[j].low < want && want < terms[j].high, "%d: %+v", j, terms[j])
	}
}

// What data cannot tell has no terms.
func TestRegressNothing(t *testing.T) {
	terms := func(y []float64, predictors [][]float64) []term { list, _ := regress(y, predictors); return list }
	y, x := []float64{1, 2, 4, 7, 9}, []float64{1, 2, 3, 5, 4}
	require.NotNil(t, terms(y, [][]float64{x}))
	require.Nil(t, terms(y[:2], [][]float64{x[:2]}), "two observations for two terms")
	require.Nil(t, terms(y, [][]float64{{1, 1, 1, 1, 1}}), "a predictor does not vary")
	require.Nil(t, terms([]float64{3, 3, 3, 3, 3}, [][]float64{x}), "the response does not vary")
	require.Nil(t, terms(y, [][]float64{x, {2, 4, 6, 10, 8}}), "one is twice the other")
	require.Nil(t, terms(y, [][]float64{{0, 1, 2, math.NaN(), 4}}))
}
