package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// group is one commit on its way.
type group struct {
	log    *eventlog.Log
	tail   *eventlog.Tail      // with what is accepted
	stored map[event.ID]uint64 // positions of the IDs that have postings
}

// commitGroup judges requests in order, writes those that are accepted, and
// commits. Requests are judged before anything is written, so a refused one leaves
// nothing behind. When writing fails and there are several, each is tried alone:
// one must not fail for what another brings.
func (e *Events) commitGroup(ctx context.Context, tx driver.Tx, requests []*appendRequest) {
	wrote, err := e.tryGroup(ctx, tx, requests)
	switch {
	case err == nil:
	case wrote && len(requests) > 1 && !errors.Is(err, ErrUnknownOutcome):
		for _, r := range requests {
			e.commitAlone(ctx, r)
		}
	default:
		fail(requests, err)
	}
}

func (e *Events) commitAlone(ctx context.Context, r *appendRequest) {
	alone := []*appendRequest{r}
	tx, err := e.db.engine.Begin(ctx)
	if err == nil {
		_, err = e.tryGroup(ctx, tx, alone)
	}
	if err != nil {
		fail(alone, err)
	}
}

// tryGroup makes one transaction of the requests. Wrote tells that the error came
// from writing, after the verdicts.
func (e *Events) tryGroup(ctx context.Context, tx driver.Tx, requests []*appendRequest) (wrote bool, err error) {
	defer tx.Rollback() // nothing after the commit
	defer func() {
		if err != nil {
			e.tail.Forget()
		}
	}()
	g := group{log: e.log, tail: e.tail}
	if err := g.judge(ctx, tx, requests); err != nil {
		return false, err
	}
	if !e.tail.Pending() {
		return false, tx.Rollback()
	}
	if err := e.tail.Write(ctx, tx, e.opts.Now().UnixMicro()); err != nil {
		return true, err
	}
	if err := tx.Commit(ctx); err != nil {
		return true, err
	}
	e.tail.Commit()
	e.news.publish()
	return false, nil
}

// judge gives each request its verdict as far as it is known before the commit.
func (g *group) judge(ctx context.Context, q driver.Querier, requests []*appendRequest) error {
	if err := g.tail.Sync(ctx, q); err != nil {
		return err
	}
	if err := g.lookUp(ctx, q, requests); err != nil {
		return err
	}
	if err := g.probe(ctx, q, requests); err != nil {
		return err
	}
	for _, r := range requests {
		r.positions, r.err = nil, nil
		done, err := g.repeated(ctx, q, r)
		if err != nil {
			return err
		}
		if done {
			continue
		}
		if r.err = g.conflict(r); r.err == nil {
			r.positions = g.tail.Add(r.records)
		}
	}
	return nil
}

// lookUp finds which of the group's IDs have postings.
func (g *group) lookUp(ctx context.Context, q driver.Querier, requests []*appendRequest) (err error) {
	var ids []event.ID
	for _, r := range requests {
		if r.ids == 0 {
			continue
		}
		for i := range r.records {
			if id := r.records[i].Event.ID; !id.IsZero() {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) > 0 {
		g.stored, err = g.log.Positions(ctx, q, ids)
	}
	return err
}

// probe asks for an event that matches each item of the conditions, of those that
// have postings. Most conditions are about events that have none: those after what
// their caller has just read.
func (g *group) probe(ctx context.Context, q driver.Querier, requests []*appendRequest) error {
	var probes []*eventlog.Probe
	for _, r := range requests {
		r.probes = make([]eventlog.Probe, len(r.items))
		for i := range r.items {
			r.probes[i] = eventlog.Probe{Item: &r.items[i], After: r.after}
			if r.after < g.tail.Indexed() {
				probes = append(probes, &r.probes[i])
			}
		}
	}
	return g.log.Probe(ctx, q, probes)
}

// conflict judges a condition by what is stored and by what the group adds before.
func (g *group) conflict(r *appendRequest) error {
	for i := range r.probes {
		at := r.probes[i].Found
		if at == 0 {
			at = g.tail.First(&r.items[i], r.after)
		}
		if at > 0 {
			return &ConflictError{Position: at, Item: i, After: r.after}
		}
	}
	return nil
}

// repeated tells whether a request gives IDs that are taken, and then its verdict:
// the old positions when all events are there with the same content.
func (g *group) repeated(ctx context.Context, q driver.Querier, r *appendRequest) (bool, error) {
	if r.ids == 0 {
		return false, nil
	}
	positions := make([]uint64, 0, len(r.records))
	var taken *event.Event
	for i := range r.records {
		ev := r.records[i].Event
		at, same, err := g.find(ctx, q, ev)
		switch {
		case err != nil:
			return false, err
		case at == 0:
			continue
		case !same:
			r.err = fmt.Errorf("%w: event %d has the ID %s and other content", ErrDuplicate, at, ev.ID)
			return true, nil
		}
		taken = ev
		positions = append(positions, at)
	}
	switch len(positions) {
	case 0:
		return false, nil
	case len(r.records):
		r.positions = positions
	default:
		r.err = fmt.Errorf("%w: %d of %d events are stored already, %s among them; repeat an append as it was",
			ErrDuplicate, len(positions), len(r.records), taken.ID)
	}
	return true, nil
}

// find returns the position of an event with the ID of ev, zero when there is
// none, and whether it has the same content.
func (g *group) find(ctx context.Context, q driver.Querier, ev *event.Event) (at uint64, same bool, err error) {
	if ev.ID.IsZero() {
		return 0, false, nil
	}
	at, pending, ok := g.tail.Find(ev.ID)
	if pending != nil {
		return at, pending.Equal(ev), nil
	}
	if !ok {
		if at, ok = g.stored[ev.ID]; !ok {
			return 0, false, nil
		}
	}
	list, _, err := g.log.Read(ctx, q, eventlog.Page{Items: everything, After: at - 1, Limit: 1, Bytes: pageBytes})
	if err != nil {
		return 0, false, err
	}
	if len(list) == 0 || list[0].Position != at {
		return 0, false, fmt.Errorf("%w: no event %d, which has the ID %s", ErrCorrupt, at, ev.ID)
	}
	return at, list[0].Equal(ev), nil
}

// everything is the compiled query for every event.
var everything = eventlog.Compile(event.All())
