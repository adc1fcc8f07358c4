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

// groupCommit takes appends through the states that [eventlog.Tail] describes: it queues
// them, makes one transaction of those that wait, and makes that durable. One of the
// waiting goroutines leads: it commits for all that wait and then passes the lead to the
// next, so that there is no goroutine of the store's own.
//
// Where the engine is a driver.Overlapper a group is judged and written while the one
// before is synced. An append is acknowledged, and refused, for what is durable, and a read
// ends there. See docs/adr/0029-visible-before-durable.md.
type groupCommit struct {
	engine     driver.Engine
	overlapper driver.Overlapper // nil where a commit is durable when it returns
	tail       *eventlog.Tail

	slots  chan struct{} // one for each append that may wait
	groups atomic.Uint64 // so many were taken

	mu      sync.Mutex
	busy    bool // somebody leads
	waiting []*appendRequest
	clients int  // as far as they were seen at once
	beside  bool // something beside events was committed after the last sync began

	syncing  chan struct{} // holds one while somebody syncs
	inSync   atomic.Int64  // requests that wait for a sync
	syncTime atomic.Int64  // nanoseconds, an average
	workTime atomic.Int64  // of the work for a request
}

func newGroupCommit(e driver.Engine, tail *eventlog.Tail, queue int) *groupCommit {
	overlapper, _ := e.(driver.Overlapper)
	return &groupCommit{engine: e, overlapper: overlapper, tail: tail, slots: make(chan struct{}, queue), syncing: make(chan struct{}, 1)}
}

// errAborted stands until a verdict takes its place, so that a panic in the leader
// leaves nobody waiting.
var errAborted = errors.New("the commit was aborted")

// lead commits one group for everybody in it. Where a commit can become durable beside
// the next transaction, it passes the lead before it waits for that.
func (e *Events) lead(ctx context.Context, r *appendRequest) {
	c := e.commit
	c.awaitSync()
	tx, err := c.begin(ctx)
	if err != nil && ctx.Err() != nil {
		c.withdraw(r)
		if r.err = err; !errors.Is(err, ctx.Err()) {
			r.err = fmt.Errorf("%w: %w", ctx.Err(), err) // what became of the connection
		}
		return
	}
	c.gather()
	group := c.take()
	begin := time.Now()
	pass := sync.OnceFunc(c.passOn)
	defer pass()
	defer wake(group, r)
	for _, g := range group {
		g.err = errAborted
	}
	if err != nil {
		fail(group, err)
		return
	}
	e.commitGroup(context.WithoutCancel(ctx), tx, group)
	average(&c.workTime, time.Since(begin)/time.Duration(len(group)))
	c.settle(group, pass)
	if slices.ContainsFunc(group, func(g *appendRequest) bool { return g.err == nil && len(g.positions) > 0 }) {
		e.news.publish()
	}
}

// wake wakes everybody in a group but the leader: they have their verdicts.
func wake(group []*appendRequest, leader *appendRequest) {
	for _, g := range group {
		if g != leader {
			g.wake <- struct{}{}
		}
	}
}

func fail(group []*appendRequest, err error) {
	for _, r := range group {
		r.positions, r.err = nil, err
	}
}

// enter waits for a place in the queue and tells whether the request is to lead.
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
	leader = !c.busy
	c.busy, r.leading = true, leader
	return leader, nil
}

func (c *groupCommit) leave() { <-c.slots }

// await waits until the request has a verdict or is to lead. A request that is
// given up leaves the queue, unless its commit has begun.
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

// withdraw takes a request out of the queue, with the lead if it has it. It
// returns false when the request is not there any more.
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

// passOn passes the lead.
func (c *groupCommit) passOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
}

// pass gives the lead to the next request. The caller holds the lock and the lead.
func (c *groupCommit) pass() {
	c.busy = len(c.waiting) > 0
	if c.busy {
		next := c.waiting[0]
		next.leading = true
		next.wake <- struct{}{}
	}
}

// weight is the part of a new value in an average.
const weight = 8

func average(of *atomic.Int64, d time.Duration) {
	old := of.Load()
	of.Store(old + (int64(d)-old)/weight)
}

// pays tells whether it pays to write a group beside the sync of the one before. It takes
// two parties of clients: while one waits for the sync the other one is judged. Where a
// sync takes longer than the work for all clients, each party would wait for two of them,
// and one party of all is faster.
func (c *groupCommit) pays(clients int) bool {
	return c.overlapper != nil && c.syncTime.Load() < c.workTime.Load()*int64(clients)
}

// count returns how many requests wait, and how many are likely to when all that are
// answered have come back.
func (c *groupCommit) count() (waiting, clients int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting = len(c.waiting)
	c.clients = max(c.clients, waiting+int(c.inSync.Load()))
	return waiting, c.clients
}

// awaitSync waits for the sync of the group before, unless it pays to go on beside it: those
// that it answers come back and are judged together with those that wait. It does not wait
// for one that takes much longer than most.
func (c *groupCommit) awaitSync() {
	waiting, _ := c.count()
	if len(c.syncing) == 0 || c.pays(waiting+int(c.inSync.Load())) {
		return
	}
	late := time.NewTimer(2 * time.Duration(c.syncTime.Load()))
	defer late.Stop()
	select {
	case c.syncing <- struct{}{}:
		<-c.syncing
	case <-late.C:
	}
}

// begin begins the transaction of a group.
func (c *groupCommit) begin(ctx context.Context) (driver.Tx, error) {
	if c.overlapper == nil {
		return c.engine.Begin(ctx)
	}
	return c.overlapper.BeginVisible(ctx)
}

// yields is how often a leader lets others run before it takes a group.
const yields = 16

// gather lets those that the last commit has answered come back with their next
// append. Without it groups of one would alternate with groups of all others.
func (c *groupCommit) gather() {
	for range yields {
		waiting, clients := c.count()
		if c.pays(clients) {
			clients = (clients + 1) / 2 // the others wait for the sync
		}
		if waiting >= clients {
			return
		}
		runtime.Gosched()
	}
}

// take removes the requests of the next commit from the queue. The first of them
// is the leader's own.
func (c *groupCommit) take() []*appendRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, events, bytes := 0, 0, 0
	for _, r := range c.waiting {
		events += len(r.records)
		bytes += r.bytes
		if n > 0 && (events > groupEvents || bytes > groupBytes || r.alone || c.waiting[0].alone) {
			break
		}
		n++
	}
	c.clients -= (c.clients + weight - 1) / weight // those that do not come any more
	c.groups.Add(1)
	group := slices.Clone(c.waiting[:n])
	c.waiting = slices.Delete(c.waiting, 0, n)
	return group
}

// committed notes that a transaction is, which has written something beside events, or not.
func (c *groupCommit) committed(beside bool) {
	c.tail.Commit()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beside = c.beside || beside
}

// settle waits until the verdicts of a group hold: what they are about is durable. It
// passes the lead before it waits for the sync.
func (c *groupCommit) settle(group []*appendRequest, pass func()) {
	if c.overlapper == nil {
		return
	}
	n := int64(len(group))
	c.inSync.Add(n)
	defer c.inSync.Add(-n)
	err := c.sync(c.tail.Head(), pass)
	for _, r := range group {
		if err != nil && (r.err == nil || errors.Is(r.err, ErrConflict) || errors.Is(r.err, event.ErrDuplicate)) {
			r.positions, r.err = nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		}
	}
}

// sync waits until everything up to a position is durable. Once no other sync runs, and
// before its own, it calls next.
func (c *groupCommit) sync(to uint64, next func()) error {
	c.syncing <- struct{}{}
	defer func() { <-c.syncing }()
	next()
	c.mu.Lock()
	beside := c.beside
	c.beside = false
	c.mu.Unlock()
	if c.tail.Durable(0) >= to && !beside {
		return nil
	}
	begin := time.Now()
	// A sync that has begun ends: its outcome is everybody's.
	if err := c.overlapper.Sync(context.Background()); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.beside = c.beside || beside
		return err
	}
	average(&c.syncTime, time.Since(begin))
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

// visible returns up to where a reader may see, who has seen a position in a view.
func (c *groupCommit) visible(seen uint64) (uint64, error) {
	to, ok := c.tail.Visible(seen)
	if !ok {
		if err := c.ensure(seen); err != nil {
			return 0, fmt.Errorf("make durable what another process has written: %w", err)
		}
	}
	return to, nil
}
