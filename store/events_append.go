package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// Append adds events at consecutive positions, all or none, unless an event
// matches the condition; nil is no condition. It returns their positions once
// they are durable, as the durability level promises.
//
// Appends from several goroutines share commits. Each is judged by its
// condition, against everything committed and the appends before it in the same
// commit. When the queue is full, further appends wait for a place. When ctx
// ends before the append's commit has begun, nothing is stored; after that ctx
// is ignored, and Append returns the outcome.
//
// If all events have IDs that are stored already with the same content, the
// append is a repetition: Append returns the old positions, whatever the
// condition. Append does not change the events, nor retain them after it
// returns.
//
// It fails with ErrConflict (an *event.ConflictError) by the condition, with
// event.ErrDuplicate when some of the IDs are stored or have other content,
// with ErrInvalid, and as driver.Engine.Begin and driver.Tx.Commit do.
func (e *Events) Append(ctx context.Context, events []event.Event, cond *event.Condition) (positions []uint64, err error) {
	defer wrap(&err, "append")
	if err := event.Validate(events); err != nil {
		return nil, err
	}
	r, err := newAppendRequest(ctx, events, cond)
	if err != nil {
		return nil, err
	}
	return e.append(ctx, r)
}

// append submits a request to the writer, again after each time that its
// condition had to be judged on a view.
func (e *Events) append(ctx context.Context, r *appendRequest) (positions []uint64, err error) {
	if r.ids > 0 && r.bytes > maxCompared {
		err = e.compareOnView(ctx, r)
	}
	for err == nil {
		if err = e.submit(ctx, r); err == nil {
			return r.positions, nil
		}
		if errors.Is(err, errPutBack) {
			err = e.judgeOnView(ctx, r)
		}
	}
	return nil, err
}

func (e *Events) submit(ctx context.Context, r *appendRequest) error {
	leader, err := e.commit.enter(ctx, r)
	if err != nil {
		return err
	}
	defer e.commit.leave()
	if !leader {
		if leader, err = e.commit.await(ctx, r); err != nil {
			return err
		}
	}
	if leader {
		e.lead(ctx, r)
	}
	return r.err
}

// appendRequest is one queued append.
type appendRequest struct {
	records []eventlog.Record
	bytes   int
	ids     int // events with an ID

	guard     eventlog.Guard // the part of the condition that remains to be judged; without items: none
	after     uint64         // the condition's After
	viewsUsed int            // how often the condition was judged on a view

	known map[*event.Event]stored // stored events with the given IDs, found on a view

	// within, if not nil, may refuse a request that passes its condition, and
	// writes its rows in other tables. Known reports that the events are stored
	// already.
	within    func(ctx context.Context, tx driver.Tx, known bool) (verdict, err error)
	exclusive bool  // no other request shares its commit
	now       int64 // time of its events, if it is alone; zero means the clock's

	cancelled func() error // returns an error once the caller has given up

	wake    chan struct{} // receives when the request has a verdict or leads
	leading bool          // it leads its group; guarded by the queue

	positions []uint64 // the verdict, with err
	err       error
}

// newAppendRequest returns the request of events that are valid, or of none.
func newAppendRequest(ctx context.Context, events []event.Event, cond *event.Condition) (*appendRequest, error) {
	r := &appendRequest{cancelled: ctx.Err, wake: make(chan struct{}, 1)}
	if cond != nil {
		if err := cond.FailIfEventsMatch.Validate(); err != nil {
			return nil, fmt.Errorf("condition: %w", err)
		}
		r.guard = eventlog.Guard{Items: eventlog.Compile(cond.FailIfEventsMatch), After: cond.After}
		r.after = cond.After
	}
	for i := range events {
		r.bytes += len(events[i].Data) + len(events[i].Metadata)
		if !events[i].ID.IsZero() {
			r.ids++
		}
	}
	r.records = eventlog.Prepare(events)
	return r, nil
}

// givenUp reports whether the caller's context has ended; the verdict is then
// its error.
func (r *appendRequest) givenUp() bool {
	if r.err == nil {
		r.err = r.cancelled()
	}
	return r.err != nil
}

// group has the requests of one commit while they are judged and written.
type group struct {
	log    *eventlog.Log
	tail   *eventlog.Tail // with the events that were accepted; nil outside the writer
	tx     driver.Tx
	others bool                    // rows of other tables may have been written
	rows   int                     // EventOptions.LockedRows
	stored map[*event.Event]stored // stored events, by the event of a request with the same ID
}

// stored identifies the event that is stored under an ID.
type stored struct {
	at   uint64
	same bool // it has the same content as the request's event
}

// commitGroup judges requests in order, writes the accepted ones, and commits.
// All requests are judged before anything is written, so that a refused one
// leaves no rows. When writing several fails, each is tried alone, so that no
// request fails because of another one's events.
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
	tx, err := e.commit.begin(ctx)
	if err == nil {
		_, err = e.tryGroup(ctx, tx, alone)
	}
	if err != nil {
		fail(alone, err)
	}
}

// tryGroup runs the requests in one transaction. Wrote reports that the error
// came from writing, after the verdicts.
func (e *Events) tryGroup(ctx context.Context, tx driver.Tx, requests []*appendRequest) (wrote bool, err error) {
	defer tx.Rollback() // has no effect after the commit
	defer func() {
		if err != nil {
			e.tail.Abort()
		}
	}()
	if requests[0].exclusive { // a batch of an import
		if err := driver.LiftTimeouts(ctx, tx); err != nil {
			return false, err
		}
	}
	g := group{log: e.log, tail: e.tail, tx: tx, rows: e.opts.LockedRows}
	if err := g.judge(ctx, tx, requests); err != nil {
		return false, err
	}
	if !e.tail.Pending() && !g.others {
		return false, tx.Rollback()
	}
	if e.tail.Pending() {
		if err := e.tail.Write(ctx, tx, cmp.Or(requests[0].now, e.opts.Now().UnixMicro())); err != nil {
			return true, err
		}
		if l, ok := e.db.engine.(driver.Listener); ok && l.Announcement() != "" {
			if err := driver.Run(ctx, tx, l.Announcement()); err != nil {
				return true, err
			}
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return true, err
	}
	e.commit.committed(g.others)
	return false, nil
}

// judge gives each request the verdict that is known before the commit. It
// leaves out requests whose callers have given up.
func (g *group) judge(ctx context.Context, q driver.Querier, requests []*appendRequest) error {
	for _, r := range requests {
		r.positions, r.err = nil, nil
	}
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
		if r.givenUp() {
			continue
		}
		known := g.repeated(r)
		if !known {
			r.err = g.conflict(r)
		}
		if r.err == nil && r.within != nil {
			var err error
			if r.err, err = r.within(ctx, g.tx, known); err != nil {
				return err
			}
			g.others = true
		}
		if r.err == nil && !known {
			r.positions = g.tail.Add(r.records)
		}
	}
	return nil
}

// given is an event with an ID, and its request.
type given struct {
	*event.Event
	by *appendRequest
	at uint64 // of the stored event with the ID
}

// maxGiven is how many IDs are looked up at once; after each batch, requests
// that were given up are left out.
const maxGiven = 512

// lookUp finds which of the group's IDs are stored, and whether with the same
// content.
func (g *group) lookUp(ctx context.Context, q driver.Querier, requests []*appendRequest) error {
	var all []given
	for _, r := range requests {
		if r.ids == 0 {
			continue
		}
		if g.stored == nil {
			g.stored = map[*event.Event]stored{}
		}
		for i := range r.records {
			ev := r.records[i].Event
			if old, ok := r.known[ev]; ok {
				g.stored[ev] = old
			} else if !ev.ID.IsZero() {
				all = append(all, given{Event: ev, by: r})
			}
		}
	}
	for part := range slices.Chunk(all, maxGiven) {
		if err := g.compare(ctx, q, part); err != nil {
			return err
		}
	}
	return nil
}

// compare compares events with the stored events that have their IDs.
func (g *group) compare(ctx context.Context, q driver.Querier, list []given) error {
	list = withoutGivenUp(list)
	ids := make([]event.ID, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	indexed, err := g.log.Positions(ctx, q, ids)
	if err != nil {
		return err
	}
	for i := range list {
		list[i].at = indexed[ids[i]]
		if g.tail != nil && list[i].at == 0 {
			list[i].at, _, _ = g.tail.Find(ids[i])
		}
	}
	list = slices.DeleteFunc(list, func(ev given) bool { return ev.at == 0 })
	slices.SortFunc(list, func(a, b given) int { return cmp.Compare(a.at, b.at) })
	for len(list) > 0 {
		if list, err = g.comparePage(ctx, q, list); err != nil {
			return err
		}
		list = withoutGivenUp(list)
	}
	return nil
}

// withoutGivenUp returns the events of requests that are not given up.
func withoutGivenUp(list []given) []given {
	return slices.DeleteFunc(list, func(ev given) bool { return ev.by.givenUp() })
}

// comparePage compares events, ordered by position, up to the bytes of a page,
// and returns the rest.
func (g *group) comparePage(ctx context.Context, q driver.Querier, list []given) ([]given, error) {
	positions := make([]uint64, len(list))
	for i := range list {
		positions[i] = list[i].at
	}
	gone := eventlog.Gone{}
	page, err := g.log.ReadAt(ctx, q, slices.Compact(positions), pageBytes, gone)
	if err != nil {
		return nil, err
	}
	for i := range page {
		for len(list) > 0 && list[0].at == page[i].Position {
			g.stored[list[0].Event] = stored{at: list[0].at, same: gone.Same(&page[i], list[0].Event)}
			list = list[1:]
		}
	}
	return list, nil
}

// probe searches the postings for events that match the conditions. Most
// conditions need no postings, because the caller has just read up to the head.
// A condition that would cost more than the writer's lock allows is put back,
// until it was judged on a view maxViewsUsed times.
func (g *group) probe(ctx context.Context, q driver.Querier, requests []*appendRequest) error {
	var some, rest []*eventlog.Guard
	for _, r := range requests {
		r.guard.Found, r.guard.Left = 0, false
		switch {
		case len(r.guard.Items) == 0 || r.guard.After >= g.tail.Indexed():
		case r.viewsUsed < maxViewsUsed:
			some = append(some, &r.guard)
		default:
			rest = append(rest, &r.guard)
		}
	}
	for _, part := range []struct {
		guards []*eventlog.Guard
		bound  eventlog.Bound
	}{{some, eventlog.Bound{Each: g.rows, All: groupRows * g.rows}}, {rest, eventlog.Bound{}}} {
		if len(part.guards) == 0 {
			continue
		}
		if err := g.log.Judge(ctx, q, part.guards, g.tail.Indexed(), part.bound); err != nil {
			return err
		}
	}
	return nil
}

// conflict judges a condition against the stored events and those that the
// group has accepted so far.
func (g *group) conflict(r *appendRequest) error {
	guard := &r.guard
	if guard.Left {
		return errPutBack
	}
	unposted := len(guard.Items)
	if guard.Found > 0 {
		unposted = guard.Item
	}
	for i := range guard.Items[:unposted] {
		if at := g.tail.First(&guard.Items[i], guard.After); at > 0 {
			return &event.ConflictError{Position: at, Item: i, After: r.after}
		}
	}
	return r.conflict()
}

// conflict returns the error if the request's guard has found an event.
func (r *appendRequest) conflict() error {
	if r.guard.Found == 0 {
		return nil
	}
	return &event.ConflictError{Position: r.guard.Found, Item: r.guard.Item, After: r.after}
}

// repeated reports whether a request has IDs that are stored, and gives it the
// verdict: the old positions when all events are stored with the same content.
func (g *group) repeated(r *appendRequest) bool {
	if r.ids == 0 {
		return false
	}
	positions := make([]uint64, 0, len(r.records))
	var taken *event.Event
	for i := range r.records {
		ev := r.records[i].Event
		old := g.find(ev)
		switch {
		case old.at == 0:
			continue
		case !old.same:
			r.err = fmt.Errorf("%w: event %d has the ID %s and other content", event.ErrDuplicate, old.at, ev.ID)
			return true
		}
		taken = ev
		positions = append(positions, old.at)
	}
	switch len(positions) {
	case 0:
		return false
	case len(r.records):
		r.positions = positions
	default:
		r.err = fmt.Errorf("%w: %d of %d events are stored already, %s among them; repeat an append as it was",
			event.ErrDuplicate, len(positions), len(r.records), taken.ID)
	}
	return true
}

// find returns the stored or accepted event with the ID of ev; position zero
// means none.
func (g *group) find(ev *event.Event) stored {
	if at, pending, _ := g.tail.Find(ev.ID); pending != nil {
		return stored{at: at, same: pending.Equal(ev)}
	}
	return g.stored[ev]
}
