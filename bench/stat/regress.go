package stat

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// ErrDependent is returned when a predictor is a linear combination of others,
// so that no data can tell their effects apart.
var ErrDependent = errors.New("predictors depend on each other")

// Predictor is a quantity that may explain the response: a value for each
// observation.
type Predictor struct {
	Name   string
	Values []float64
}

// RegressOptions change the model of Regress; the zero value is a plain linear
// one.
type RegressOptions struct {
	// Log fits log y over the logarithms of the predictors, all of which must be
	// positive: coefficients are exponents, and effects multiply.
	Log bool

	// Interactions adds products of predictors, by their names. A time a block of
	// so many entities with so many attributes each is a case for one.
	Interactions [][]string

	// Robust takes standard errors that hold when the residuals spread more in
	// some places than in others (HC3), as times do. With hundreds of observations
	// it costs nothing where they do not.
	Robust bool
}

// Regression is a line, or a plane of more dimensions, through observations.
type Regression struct {
	N       int `json:"n"`       // observations
	Freedom int `json:"freedom"` // N less the number of terms

	R2         float64 `json:"r2"` // part of the response's variance that is explained
	AdjustedR2 float64 `json:"adjusted_r2"`
	Sigma      float64 `json:"sigma"` // standard error of the residuals, in the response's unit
	F          float64 `json:"f"`     // of the model against the mean alone
	P          float64 `json:"p"`     // of F

	Terms []Term `json:"terms"` // the intercept, the predictors, the interactions

	// Condition is how many times errors of the data grow in the coefficients, at
	// worst (columns scaled to length 1). Above 30 predictors are hard to tell
	// apart.
	Condition float64 `json:"condition"`

	// SpreadP is the p-value of the residuals spreading evenly (Breusch and
	// Pagan, as Koenker has it): a low one asks for Robust.
	SpreadP float64 `json:"spread_p"`

	Warnings []string `json:"warnings,omitempty"` // for readers
}

// Intercept is the name of the first term.
const Intercept = "(intercept)"

// Term is a coefficient of a regression.
type Term struct {
	Name        string  `json:"name"` // of the predictor, or names with × between them
	Coefficient float64 `json:"coefficient"`
	StdError    float64 `json:"std_error"`
	T           float64 `json:"t"`
	P           float64 `json:"p"`    // of the coefficient being 0
	Low         float64 `json:"low"`  // of the 95 % interval
	High        float64 `json:"high"` // of the 95 % interval

	// Beta is the coefficient in standard deviations, of the response for one of
	// the predictor; it compares predictors of different units. 0 for the intercept.
	Beta float64 `json:"beta"`

	// Share is the term's part of the variance, averaged over all orders in which
	// terms can be added (Lindeman, Merenda and Gold). Shares add up to R2. 0 for
	// the intercept.
	Share float64 `json:"share"`
}

// Term returns the term of a name, or nil.
func (r *Regression) Term(name string) *Term {
	for i := range r.Terms {
		if r.Terms[i].Name == name {
			return &r.Terms[i]
		}
	}
	return nil
}

// Regress fits the response to the predictors by ordinary least squares with an
// intercept. It returns ErrTooFew when there are not more observations than
// terms, ErrConstant when the response or a predictor does not vary, and
// ErrDependent.
func Regress(y []float64, predictors []Predictor, o RegressOptions) (*Regression, error) {
	columns, y, err := model(y, predictors, o)
	if err != nil {
		return nil, fmt.Errorf("regression: %w", err)
	}
	f, err := fitColumns(columns, y)
	if err != nil {
		return nil, fmt.Errorf("regression: %w", err)
	}
	n, freedom := float64(f.n), float64(f.n-f.k)
	total := squares(y)
	r := &Regression{N: f.n, Freedom: f.n - f.k, Condition: f.condition}
	r.R2 = min(max(1-f.rss/total, 0), 1)
	r.AdjustedR2 = 1 - (1-r.R2)*(n-1)/freedom
	r.Sigma = math.Sqrt(f.rss / freedom)
	slopes := float64(f.k - 1)
	r.F = over(r.R2/slopes, (1-r.R2)/freedom)
	r.P = distuv.F{D1: slopes, D2: freedom}.Survival(r.F)
	r.SpreadP = f.spread()
	errs := f.errors()
	if o.Robust {
		errs = f.robustErrors()
	}
	shares := shares(columns[1:], y)
	for j, c := range columns {
		t := newTerm(c.Name, f.coefficients[j], errs[j], freedom)
		if j > 0 {
			t.Beta = t.Coefficient * math.Sqrt(squares(c.Values)/total)
			t.Share = shares[j-1]
		}
		r.Terms = append(r.Terms, t)
	}
	r.warn(o)
	return r, nil
}

func newTerm(name string, coefficient, stdError, freedom float64) Term {
	t := Term{Name: name, Coefficient: coefficient, StdError: stdError, T: over(coefficient, stdError)}
	t.P = twoSidedT(t.T, freedom)
	half := tQuantile(1-Alpha/2, freedom) * stdError
	t.Low, t.High = coefficient-half, coefficient+half
	return t
}

// over divides. A fit without residuals divides by 0; what comes of it stays a
// number, which JSON can write.
func over(a, b float64) float64 {
	switch {
	case a == 0:
		return 0
	case b == 0:
		return math.Copysign(math.MaxFloat64, a)
	}
	return min(max(a/b, -math.MaxFloat64), math.MaxFloat64)
}

// conditionLimit is Belsley's rule of thumb.
const conditionLimit = 30

func (r *Regression) warn(o RegressOptions) {
	if r.Condition > conditionLimit {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"condition number %.0f: predictors vary together, so that single coefficients say little", r.Condition))
	}
	if r.SpreadP < Alpha && !o.Robust {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"residuals spread unevenly (p=%.2g): intervals need robust standard errors", r.SpreadP))
	}
	if len(r.Terms)-1 > maxShared {
		r.Warnings = append(r.Warnings, fmt.Sprintf("no shares for more than %d terms", maxShared))
	}
}

// squares returns the sum of squared distances from the mean.
func squares(values []float64) float64 {
	var mean, sum float64
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return sum
}
