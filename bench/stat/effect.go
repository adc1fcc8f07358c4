package stat

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Effect is what a predictor does to a response while the others stay as they are.
type Effect struct {
	Name      string
	Partial   float64 // correlation, of what the others do not explain of either
	Beta      float64 // coefficient in standard deviations, of the response for one of the predictor
	Inflation float64 // of the coefficient's variance: 1 when the predictor is independent of the others
}

// Effects returns the effect of each predictor. It returns ErrTooFew when there are not
// more observations than predictors and two, ErrConstant when something does not vary,
// and ErrDependent.
func Effects(y []float64, predictors []Predictor) ([]Effect, error) {
	n, k := len(y), len(predictors)
	if n <= k+2 {
		return nil, fmt.Errorf("effects: %d observations for %d predictors: %w", n, k, ErrTooFew)
	}
	data := mat.NewDense(n, k+1, nil)
	data.SetCol(k, y)
	for j, p := range predictors {
		if constant(p.Values) || constant(y) {
			return nil, fmt.Errorf("effects: %s, or the response: %w", p.Name, ErrConstant)
		}
		data.SetCol(j, p.Values)
	}
	var all mat.SymDense
	stat.CorrelationMatrix(&all, data, nil)
	var of, with mat.Dense // the inverses without and with the response
	if of.Inverse(all.SliceSym(0, k)) != nil || with.Inverse(&all) != nil {
		return nil, fmt.Errorf("effects: %w", ErrDependent)
	}
	var betas mat.VecDense
	betas.MulVec(&of, mat.NewVecDense(k, mat.Col(nil, k, &all)[:k]))
	list := make([]Effect, k)
	for j, p := range predictors {
		list[j] = Effect{
			Name: p.Name, Beta: betas.AtVec(j), Inflation: of.At(j, j),
			Partial: -with.At(j, k) / math.Sqrt(with.At(j, j)*with.At(k, k)),
		}
	}
	return list, nil
}
