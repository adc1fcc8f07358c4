package event

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Projector folds the events that its query selects into a state.
type Projector interface {
	Selects() Query
	Apply(e *Sequenced) error
}

// Resumer is a Projector that knows how far its state goes. Project gives it
// only later events, so the state may come from a snapshot or from an earlier
// pass.
type Resumer interface {
	Projector

	// Reached returns the position up to which the state includes every event.
	Reached() uint64
	// Reach records that the state now includes every event up to a position.
	Reach(position uint64)
}

// Projection is a Projector with a typed state. It starts with the given State,
// which includes the events up to After, and continues from there each time it
// is passed to Project. State and After together are a snapshot.
type Projection[S any] struct {
	Query Query
	State S
	After uint64 // zero: State is of no event

	// Next returns the next state. If it fails, the state stays as before the
	// event.
	Next func(state S, e *Sequenced) (S, error)
}

// NewProjection returns a projection with an initial state, whose steps cannot
// fail.
func NewProjection[S any](q Query, initial S, next func(S, *Sequenced) S) *Projection[S] {
	return TryProjection(q, initial, func(s S, e *Sequenced) (S, error) { return next(s, e), nil })
}

// TryProjection returns a projection with an initial state, whose steps may
// fail, for example because an event cannot be decoded.
func TryProjection[S any](q Query, initial S, next func(S, *Sequenced) (S, error)) *Projection[S] {
	return &Projection[S]{Query: q, State: initial, Next: next}
}

// Selects implements Projector.
func (p *Projection[S]) Selects() Query { return p.Query }

// Apply implements Projector. An event that the state already includes is
// ignored.
func (p *Projection[S]) Apply(e *Sequenced) error {
	if e.Position <= p.After {
		return nil
	}
	state, err := p.Next(p.State, e)
	if err != nil {
		return err
	}
	p.State, p.After = state, e.Position
	return nil
}

// Reached implements Resumer.
func (p *Projection[S]) Reached() uint64 { return p.After }

// Reach implements Resumer.
func (p *Projection[S]) Reach(position uint64) { p.After = max(p.After, position) }

// Project reads the events that any of the projectors selects, once, and
// applies each to the projectors that select it. A Resumer gets the events
// after the position that it has reached. Project returns the condition that
// guards a decision on the projectors' states: no event that any of them
// selects was appended since. An error of a projector ends the pass. A
// Projection keeps the events applied by then, and Project may be called again.
func Project(ctx context.Context, s Store, projectors ...Projector) (*Condition, error) {
	p, err := newPass(projectors)
	if err != nil {
		return nil, fmt.Errorf("project: %w", err)
	}
	return p.run(ctx, s)
}

// pass reads for several projectors, perhaps repeatedly.
type pass struct {
	projectors []Projector
	queries    []Query       // of the projectors
	all        Query         // selects the events of all projectors
	after      []uint64      // position that each projector has reached
	byTag      map[Tag][]int // the projectors of items with tags, by the first tag
	others     []int         // the projectors of other items, and of all events
	found      []int         // memory of candidates
}

func newPass(projectors []Projector) (*pass, error) {
	if len(projectors) == 0 {
		return nil, invalid("no projectors")
	}
	p := &pass{projectors: projectors, after: make([]uint64, len(projectors)), byTag: map[Tag][]int{}}
	everything := false
	for i, one := range projectors {
		q := one.Selects()
		p.queries = append(p.queries, q)
		p.all.Items = append(p.all.Items, q.Items...)
		if len(q.Items) == 0 {
			everything = true
			p.others = append(p.others, i)
		}
		for _, it := range q.Items {
			if len(it.Tags) > 0 {
				p.byTag[it.Tags[0]] = append(p.byTag[it.Tags[0]], i)
			} else {
				p.others = append(p.others, i)
			}
		}
	}
	if everything {
		p.all = All()
	}
	return p, nil
}

// candidates returns the projectors that may select an event, in order, until
// the next call. There may be many, and most have another tag.
func (p *pass) candidates(ev *Event) []int {
	p.found = append(p.found[:0], p.others...)
	for _, t := range ev.Tags {
		p.found = append(p.found, p.byTag[t]...)
	}
	slices.Sort(p.found)
	p.found = slices.Compact(p.found)
	return p.found
}

// run brings every projector to the head.
func (p *pass) run(ctx context.Context, s Store) (*Condition, error) {
	for i, one := range p.projectors {
		if r, ok := one.(Resumer); ok {
			p.after[i] = r.Reached()
		}
	}

	// Pass each event to the projectors that select it.
	cond := &Condition{FailIfEventsMatch: p.all, After: slices.Min(p.after)}
	opts := &ReadOptions{From: min(cond.After, math.MaxUint64-1) + 1, Head: &cond.After}
	for ev, err := range s.Read(ctx, p.all, opts) {
		if err != nil {
			return nil, fmt.Errorf("project: %w", err)
		}
		for _, i := range p.candidates(&ev.Event) {
			if ev.Position <= p.after[i] || !p.queries[i].Matches(&ev.Event) {
				continue
			}
			if err := p.projectors[i].Apply(&ev); err != nil {
				return nil, fmt.Errorf("project: event %d: %w", ev.Position, err)
			}
		}
	}

	// Note the position that all of them have reached.
	for i, one := range p.projectors {
		if p.after[i] > cond.After {
			return nil, fmt.Errorf("project: %w", invalid("projector %d has reached event %d, the store ends with event %d: its state is of another store",
				i+1, p.after[i], cond.After))
		}
		p.after[i] = cond.After
		if r, ok := one.(Resumer); ok {
			r.Reach(cond.After)
		}
	}
	return cond, nil
}
