package stat

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// model returns the columns of a regression, with the intercept first, and the
// response, both in logarithms where that is asked for.
func model(y []float64, predictors []Predictor, o RegressOptions) ([]Predictor, []float64, error) {
	if len(predictors) == 0 {
		return nil, nil, fmt.Errorf("no predictors")
	}
	y, err := prepare("the response", y, o.Log)
	if err != nil {
		return nil, nil, err
	}
	columns := []Predictor{{Name: Intercept, Values: slices.Repeat([]float64{1}, len(y))}}
	for _, p := range predictors {
		if len(p.Values) != len(y) {
			return nil, nil, fmt.Errorf("predictor %q has %d values for %d observations", p.Name, len(p.Values), len(y))
		}
		if p.Values, err = prepare(p.Name, p.Values, o.Log); err != nil {
			return nil, nil, err
		}
		columns = append(columns, p)
	}
	for _, names := range o.Interactions {
		p, err := product(columns[1:len(predictors)+1], names)
		if err != nil {
			return nil, nil, err
		}
		columns = append(columns, p)
	}
	if len(y) <= len(columns) {
		return nil, nil, fmt.Errorf("%d observations for %d terms: %w", len(y), len(columns), ErrTooFew)
	}
	return columns, y, nil
}

// prepare checks that values vary and are numbers, and takes their logarithms
// where log says so.
func prepare(name string, values []float64, log bool) ([]float64, error) {
	values = slices.Clone(values)
	for i, v := range values {
		if log {
			if v <= 0 {
				return nil, fmt.Errorf("%s has the value %v, which has no logarithm", name, v)
			}
			values[i] = math.Log(v)
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%s has the value %v", name, v)
		}
	}
	if constant(values) {
		return nil, fmt.Errorf("%s: %w", name, ErrConstant)
	}
	return values, nil
}

// product returns the interaction of predictors.
func product(predictors []Predictor, names []string) (Predictor, error) {
	p := Predictor{Name: strings.Join(names, "×"), Values: slices.Repeat([]float64{1}, len(predictors[0].Values))}
	for _, name := range names {
		i := slices.IndexFunc(predictors, func(c Predictor) bool { return c.Name == name })
		if i < 0 {
			return p, fmt.Errorf("interaction %s: no predictor %q", p.Name, name)
		}
		for n, v := range predictors[i].Values {
			p.Values[n] *= v
		}
	}
	if constant(p.Values) {
		return p, fmt.Errorf("interaction %s: %w", p.Name, ErrConstant)
	}
	return p, nil
}
