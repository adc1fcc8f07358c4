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

// The limits of one group. A single append may exceed them; it is then committed
// alone.
const (
	groupEvents = 4096
	groupBytes  = 16 << 20
)

// groupCommit takes appends through the states that [eventlog.Tail] describes:
// it queues them, commits the waiting appends in one transaction, and makes it
// durable. One of the waiting goroutines is the leader. It commits for all
// waiting requests and then passes the lead to the next, so the store needs no
// background goroutine.
//
// With a driver.Overlapper a commit is visible before it is durable. An append
// is acknowledged or refused only when its group is durable, and reads end
// before events that are not. See docs/adr/0029-visible-before-durable.md.
type groupCommit struct {
	engine     driver.Engine
	overlapper driver.Overlapper // nil where a commit is durable when it returns
	tail       *eventlog.Tail

	slots  chan struct{} // one for each append that may wait
	groups atomic.Uint64 // number of groups so far

	mu        sync.Mutex
	hasLeader bool
	waiting   []*appendRequest
	unsynced  bool // something besides events was committed since the last sync began

	syncing  chan struct{} // holds one while a sync runs
	syncTime atomic.Int64  // average duration of a sync in nanoseconds
}

func newGroupCommit(e driver.Engine, tail *eventlog.Tail, queue int) *groupCommit {
	overlapper, _ := e.(driver.Overlapper)
	return &groupCommit{
		engine: e, overlapper: overlapper, tail: tail,
		slots: make(chan struct{}, queue), syncing: make(chan struct{}, 1),
	}
}

// errAborted is the verdict until another is set, so that a panic in the leader
// leaves no append waiting.
var errAborted = errors.New("the commit was aborted")

// gatherYields is how often a leader yields to other goroutines before it takes
// a group, so that the clients that the last group has answered can return with
// their next append. Without it groups of one alternate with groups of all
// others, and 16 clients need 70 % more syncs.
const gatherYields = 16

// lead commits one group: the leader's own request and others that wait.
func (e *Events) lead(ctx context.Context, r *appendRequest) {
	c := e.commit

	// Wait until the previous group is durable, so that its clients can join
	// this one.
	c.awaitSync()

	// Begin the transaction before taking the group, because more requests
	// arrive while the leader waits for the writer. If the leader gives up
	// meanwhile, no other request fails with it.
	tx, err := c.begin(ctx)
	if err != nil && ctx.Err() != nil {
		c.withdraw(r)
		if r.err = err; !errors.Is(err, ctx.Err()) {
			r.err = fmt.Errorf("%w: %w", ctx.Err(), err) // with the reason why the transaction could not begin
		}
		return
	}
	for range gatherYields {
		runtime.Gosched()
	}
	group := c.take()

	// In every case pass on the lead and wake the other requests of the group.
	pass := sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pass()
	})
	defer pass()
	defer func() {
		for _, g := range group {
			if g != r {
				g.wake <- struct{}{}
			}
		}
	}()
	for _, g := range group {
		g.err = errAborted
	}
	if err != nil {
		fail(group, err)
		return
	}

	// Judge, write and commit; then wait until the commit is durable.
	e.commitGroup(context.WithoutCancel(ctx), tx, group)
	c.makeDurable(group, pass)
	stored := func(g *appendRequest) bool { return g.err == nil && len(g.positions) > 0 }
	if slices.ContainsFunc(group, stored) {
		e.news.publish()
	}
}

func fail(group []*appendRequest, err error) {
	for _, r := range group {
		r.positions, r.err = nil, err
	}
}

// enter waits for a place in the queue and reports whether the request leads.
func (c *groupCommit) enter(ctx context.Context, r *appendRequest) (leader bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	select {
	case c.slots <- struct{}{}:
	default:
		select {
		case c.slots <- struct{}{}:
		case <-ctx.Done():
			return false, fmt.Errorf("wait for a place among %d appends: %w", cap(c.slots), ctx.Err())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, r)
	leader = !c.hasLeader
	c.hasLeader, r.leading = true, leader
	return leader, nil
}

func (c *groupCommit) leave() { <-c.slots }

// await waits until the request has a verdict or leads. A request whose caller
// gives up leaves the queue, unless its commit has begun.
func (c *groupCommit) await(ctx context.Context, r *appendRequest) (leader bool, err error) {
	select {
	case <-r.wake:
		return r.leading, nil
	case <-ctx.Done():
	}
	if c.withdraw(r) {
		return false, ctx.Err()
	}
	<-r.wake
	return false, nil
}

// withdraw removes a request from the queue, and passes the lead if it has it.
// It returns false if the request is no longer queued.
func (c *groupCommit) withdraw(r *appendRequest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.waiting, r)
	if i < 0 {
		return false
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
	if r.leading {
		c.pass()
	}
	return true
}

// pass gives the lead to the next request. The caller holds the lock and the lead.
func (c *groupCommit) pass() {
	c.hasLeader = len(c.waiting) > 0
	if c.hasLeader {
		next := c.waiting[0]
		next.leading = true
		next.wake <- struct{}{}
	}
}

// syncsAwaited bounds a leader's wait for a sync, in multiples of the average
// sync time. When a disk stalls, the next group is committed, and visible,
// during the sync.
const syncsAwaited = 2

// awaitSync waits for the sync of the previous group.
func (c *groupCommit) awaitSync() {
	if len(c.syncing) == 0 {
		return
	}
	stalled := time.NewTimer(time.Duration(syncsAwaited * c.syncTime.Load()))
	defer stalled.Stop()
	select {
	case c.syncing <- struct{}{}:
		<-c.syncing
	case <-stalled.C:
	}
}

// begin begins the transaction of a group.
func (c *groupCommit) begin(ctx context.Context) (driver.Tx, error) {
	if c.overlapper == nil {
		return c.engine.Begin(ctx)
	}
	return c.overlapper.BeginVisible(ctx)
}

// take removes the requests of the next group from the queue.
func (c *groupCommit) take() []*appendRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups.Add(1)
	n := groupLength(c.waiting)
	group := slices.Clone(c.waiting[:n])
	c.waiting = slices.Delete(c.waiting, 0, n)
	return group
}

// groupLength returns how many of the waiting requests form the next group: the
// leader's, which is first, and those after it within the limits.
func groupLength(waiting []*appendRequest) int {
	events, bytes := 0, 0
	for i, r := range waiting {
		events += len(r.records)
		bytes += r.bytes
		if i > 0 && (events > groupEvents || bytes > groupBytes || r.exclusive || waiting[0].exclusive) {
			return i
		}
	}
	return len(waiting)
}

// committed records that a transaction was committed. Others reports whether it
// wrote anything besides events.
func (c *groupCommit) committed(others bool) {
	c.tail.Commit()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsynced = c.unsynced || others
}

// makeDurable waits until the verdicts of a group hold, that is until the
// events that they depend on are durable. It passes the lead before it waits
// for the group's own sync.
func (c *groupCommit) makeDurable(group []*appendRequest, pass func()) {
	if c.overlapper == nil {
		return
	}
	err := c.sync(c.tail.Head(), pass)
	if err == nil {
		return
	}
	for _, r := range group {
		if r.err == nil || errors.Is(r.err, ErrConflict) || errors.Is(r.err, event.ErrDuplicate) {
			r.positions, r.err = nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		}
	}
}

// averageOf is the number of recent syncs in the average.
const averageOf = 8

// sync waits until everything up to a position is durable. It calls begun when
// no other sync runs, so that it may sync.
func (c *groupCommit) sync(to uint64, begun func()) error {
	c.syncing <- struct{}{}
	defer func() { <-c.syncing }()
	begun()
	c.mu.Lock()
	unsynced := c.unsynced
	c.unsynced = false
	c.mu.Unlock()
	if c.tail.Durable(0) >= to && !unsynced {
		return nil
	}
	start := time.Now()
	// The context never ends, because the outcome concerns every append of the
	// group.
	if err := c.overlapper.Sync(context.Background()); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.unsynced = c.unsynced || unsynced
		return err
	}
	average := c.syncTime.Load()
	c.syncTime.Store(average + (int64(time.Since(start))-average)/averageOf)
	c.tail.Durable(to)
	return nil
}

// ensure waits until everything up to a position is durable.
func (c *groupCommit) ensure(at uint64) error {
	if c.overlapper == nil || at <= c.tail.Durable(0) {
		return nil
	}
	return c.sync(at, func() {})
}

// visible returns the last position that a reader may return, if its view has
// events up to seen.
func (c *groupCommit) visible(seen uint64) (uint64, error) {
	to, ok := c.tail.Visible(seen)
	if !ok {
		if err := c.ensure(seen); err != nil {
			return 0, fmt.Errorf("make durable what another process has written: %w", err)
		}
	}
	return to, nil
}
