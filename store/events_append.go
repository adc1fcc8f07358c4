package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// The limits of one commit. A single append may exceed them; it then commits
// alone.
const (
	groupEvents = 4096
	groupBytes  = 16 << 20
)

// Append adds events at consecutive positions, all or none, unless an event
// matches the condition; nil is no condition. It returns their positions once
// they are durable, as the durability level promises.
//
// Appends from several goroutines share commits: each is judged by its own
// condition, against everything committed and against the appends before it in
// the same commit. When many wait, further ones wait for a place in the queue.
// When ctx is done before the append's commit has begun, it leaves no trace;
// after that it takes its course, and Append tells the outcome.
//
// Repeating an append whose events all have IDs that are stored already, with the
// same content, returns the old positions, whatever the condition. The events are
// not changed and not kept after Append returns.
//
// It fails with ErrConflict (a *ConflictError) by the condition, with ErrDuplicate
// when some of the IDs are stored or belong to other content, with ErrInvalid, and
// as driver.Engine.Begin and driver.Tx.Commit do.
func (e *Events) Append(ctx context.Context, events []Event, cond *Condition) ([]uint64, error) {
	r, err := validRequest(events, cond)
	if err == nil {
		r.cancelled = ctx.Err
		err = e.append(ctx, r)
	}
	if err != nil {
		return nil, fmt.Errorf("append: %w", err)
	}
	return r.positions, nil
}

// append brings a request to the writer, again and again while that puts it back to be
// judged apart.
func (e *Events) append(ctx context.Context, r *appendRequest) error {
	if r.ids > 0 && r.bytes > maxCompared {
		if err := e.compareApart(ctx, r); err != nil {
			return err
		}
	}
	for {
		err := e.submit(ctx, r)
		if !errors.Is(err, errPutBack) {
			return err
		}
		if err := e.judgeApart(ctx, r); err != nil {
			return err
		}
	}
}

func (e *Events) submit(ctx context.Context, r *appendRequest) error {
	leader, err := e.queue.enter(ctx, r)
	if err != nil {
		return err
	}
	defer e.queue.leave()
	if !leader {
		if leader, err = e.queue.await(ctx, r); err != nil {
			return err
		}
	}
	if leader {
		e.lead(ctx, r)
	}
	return r.err
}

// appendRequest is one append on its way.
type appendRequest struct {
	records []eventlog.Record
	bytes   int
	ids     int // events with an ID

	guard eventlog.Guard // the condition, after what is judged; without items there is none
	after uint64         // the condition's own
	apart int            // how often it was judged apart

	known map[*event.Event]stored // of the events with IDs, what was found apart

	// within, unless it is nil, has the last word on a request that passes, and writes
	// what belongs to it. Known says that the events are stored already.
	within func(ctx context.Context, tx driver.Tx, known bool) (verdict, err error)
	alone  bool  // it shares its commit with nobody
	now    int64 // the time of writing, of what is alone; zero is the clock's

	cancelled func() error // tells why the caller has given up, if it has

	wake    chan struct{} // receives when the request has a verdict or is to lead
	leading bool          // guarded by the queue

	positions []uint64 // the verdict, with err
	err       error
}

func validRequest(events []Event, cond *Condition) (*appendRequest, error) {
	if err := event.Validate(events); err != nil {
		return nil, err
	}
	return newAppendRequest(events, cond)
}

// newAppendRequest returns the request of events that are valid, or of none.
func newAppendRequest(events []Event, cond *Condition) (*appendRequest, error) {
	r := &appendRequest{wake: make(chan struct{}, 1)}
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

// givenUp tells whether the caller has given up, which is the verdict then.
func (r *appendRequest) givenUp() bool {
	if r.err == nil {
		r.err = r.cancelled()
	}
	return r.err != nil
}

// appendQueue orders appends. One of the waiting goroutines leads: it commits for
// all that wait and then passes the lead to the next, so that there is no
// goroutine of the store's own.
type appendQueue struct {
	slots chan struct{} // one for each append that may wait

	mu      sync.Mutex
	busy    bool // somebody leads
	waiting []*appendRequest
	all     int // clients, as far as they were seen at once

	groups atomic.Uint64 // so many were taken
}

func newAppendQueue(size int) *appendQueue { return &appendQueue{slots: make(chan struct{}, size)} }

// enter waits for a place in the queue and tells whether the request is to lead.
func (q *appendQueue) enter(ctx context.Context, r *appendRequest) (leader bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	select {
	case q.slots <- struct{}{}:
	default:
		select {
		case q.slots <- struct{}{}:
		case <-ctx.Done():
			return false, fmt.Errorf("wait for a place among %d appends: %w", cap(q.slots), ctx.Err())
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, r)
	leader = !q.busy
	q.busy, r.leading = true, leader
	return leader, nil
}

func (q *appendQueue) leave() { <-q.slots }

// await waits until the request has a verdict or is to lead. A request that is
// given up leaves the queue, unless its commit has begun.
func (q *appendQueue) await(ctx context.Context, r *appendRequest) (leader bool, err error) {
	select {
	case <-r.wake:
		return r.leading, nil
	case <-ctx.Done():
	}
	if q.withdraw(r) {
		return false, ctx.Err()
	}
	<-r.wake
	return false, nil
}

// withdraw takes a request out of the queue, with the lead if it has it. It
// returns false when the request is not there any more.
func (q *appendQueue) withdraw(r *appendRequest) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, r)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if r.leading {
		q.pass()
	}
	return true
}

// pass gives the lead to the next request. The caller holds the lock and the lead.
func (q *appendQueue) pass() {
	q.busy = len(q.waiting) > 0
	if q.busy {
		next := q.waiting[0]
		next.leading = true
		next.wake <- struct{}{}
	}
}

// yields is how often a leader lets others run before it takes a group.
const yields = 16

// gather lets those that the last commit has answered come back with their next
// append. Without it groups of one would alternate with groups of all others.
func (q *appendQueue) gather(s *shore) {
	for range yields {
		if waiting, clients := q.clients(s); waiting >= s.party(clients) {
			return
		}
		runtime.Gosched()
	}
}

// clients returns how many requests wait, and how many are likely to when all that are
// answered have come back.
func (q *appendQueue) clients(s *shore) (waiting, all int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting = len(q.waiting)
	q.all = max(q.all, waiting+int(s.pace.inFlight.Load()))
	return waiting, q.all
}

// take removes the requests of the next commit from the queue. The first of them
// is the leader's own.
func (q *appendQueue) take() []*appendRequest {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, events, bytes := 0, 0, 0
	for _, r := range q.waiting {
		events += len(r.records)
		bytes += r.bytes
		if n > 0 && (events > groupEvents || bytes > groupBytes || r.alone || q.waiting[0].alone) {
			break
		}
		n++
	}
	q.all -= (q.all + weight - 1) / weight // those that do not come any more
	q.groups.Add(1)
	group := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return group
}

// errAborted stands until a verdict takes its place, so that a panic in the leader
// leaves nobody waiting.
var errAborted = errors.New("the commit was aborted")

// lead commits one group for everybody in it. Where a commit can become durable beside
// the next transaction, it passes the lead before it waits for that.
func (e *Events) lead(ctx context.Context, r *appendRequest) {
	waiting, _ := e.queue.clients(&e.shore)
	e.shore.follow(waiting)
	tx, err := e.shore.begin(ctx, e.db.engine)
	if err != nil && ctx.Err() != nil {
		e.queue.withdraw(r)
		if r.err = err; !errors.Is(err, ctx.Err()) {
			r.err = fmt.Errorf("%w: %w", ctx.Err(), err) // what became of the connection
		}
		return
	}
	e.queue.gather(&e.shore)
	group := e.queue.take()
	begin := time.Now()
	pass := sync.OnceFunc(e.queue.passOn)
	defer pass()
	defer e.queue.tell(group, r)
	for _, g := range group {
		g.err = errAborted
	}
	if err != nil {
		fail(group, err)
		return
	}
	e.commitGroup(context.WithoutCancel(ctx), tx, group)
	e.shore.pace.worked(time.Since(begin), len(group))
	e.settle(group, pass)
	if slices.ContainsFunc(group, func(g *appendRequest) bool { return g.err == nil && len(g.positions) > 0 }) {
		e.news.publish()
	}
}

// tell wakes everybody in a group: they have their verdicts.
func (q *appendQueue) tell(group []*appendRequest, leader *appendRequest) {
	for _, g := range group {
		if g != leader {
			g.wake <- struct{}{}
		}
	}
}

// passOn passes the lead.
func (q *appendQueue) passOn() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pass()
}

func fail(group []*appendRequest, err error) {
	for _, r := range group {
		r.positions, r.err = nil, err
	}
}
