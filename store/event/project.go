package event

// Projector folds the events that its query selects into a state.
type Projector interface {
	Selects() Query
	Apply(e *Sequenced) error
}

// Projection is a Projector whose state has a type: it begins with the State
// that it is given, and Next makes the next one.
type Projection[S any] struct {
	Query Query
	State S
	Next  func(state S, e *Sequenced) S
}

// NewProjection returns a projection that begins with a state.
func NewProjection[S any](q Query, initial S, next func(S, *Sequenced) S) *Projection[S] {
	return &Projection[S]{Query: q, State: initial, Next: next}
}

// Selects implements Projector.
func (p *Projection[S]) Selects() Query { return p.Query }

// Apply implements Projector.
func (p *Projection[S]) Apply(e *Sequenced) error {
	p.State = p.Next(p.State, e)
	return nil
}
