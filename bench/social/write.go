package social

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store/driver"
)

// Change adds or deletes a relationship.
type Change struct {
	Relationship
	Add bool
}

// Toggle is a kind of write: what it changes was there and goes, or the other
// way round.
type Toggle string

// The kinds of writes.
const (
	ToggleFollower   Toggle = "follower"   // a user follows another or stops
	ToggleBlocked    Toggle = "blocked"    // a user blocks another or stops
	ToggleVisibility Toggle = "visibility" // content becomes public or is for followers
)

// Toggles are all kinds of writes.
var Toggles = []Toggle{ToggleFollower, ToggleBlocked, ToggleVisibility}

// plan returns the changes that a write makes now. The caller holds the lock.
func (o *Oracle) plan(t Toggle, object, subject Object) []Change {
	const last = 1<<63 - 1
	flip := func(r Relationship) Change { return Change{r, !o.has(r, last)} }
	switch t {
	case ToggleFollower:
		return []Change{flip(Relationship{object, Follower, subject})}
	case ToggleBlocked:
		return []Change{flip(Relationship{object, Blocked, subject})}
	}
	// What goes comes first, so that there is always one visibility at most.
	list := []Change{
		flip(Relationship{object, ContentPublic, Everybody}),
		flip(Relationship{object, ContentFollowers, o.ownerOf(object)}),
	}
	if list[0].Add {
		slices.Reverse(list)
	}
	return list
}

// begin numbers a write and remembers its changes. It is called while the write
// has the engine's transaction, so that numbers are in the order of commits.
func (o *Oracle) begin(t Toggle, object, subject Object) (write int64, changes []Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	changes = o.plan(t, object, subject)
	write = o.begun.Load() + 1
	for _, c := range changes {
		o.changes[c.Relationship] = append(o.changes[c.Relationship], change{write, c.Add})
		o.rows += c.delta()
	}
	o.begun.Store(write)
	return write, changes
}

func (c Change) delta() int {
	if c.Add {
		return 1
	}
	return -1
}

// acknowledge tells that a write is committed, and so are those before it.
func (o *Oracle) acknowledge(write int64) {
	for {
		old := o.acked.Load()
		if old >= write || o.acked.CompareAndSwap(old, write) {
			return
		}
	}
}

// void tells that a write was rolled back.
func (o *Oracle) void(write int64, changes []Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range changes {
		o.changes[c.Relationship] = slices.DeleteFunc(o.changes[c.Relationship], func(c change) bool { return c.write == write })
		o.rows -= c.delta()
	}
}

// Changed returns every relationship that a write has touched, and whether it is
// there at the last point.
func (o *Oracle) Changed() []Change {
	o.mu.RLock()
	defer o.mu.RUnlock()
	list := make([]Change, 0, len(o.changes))
	for r := range o.changes {
		list = append(list, Change{r, o.has(r, o.begun.Load())})
	}
	return list
}

// Write runs one write in a transaction of its own. It fails with ErrMismatch
// when the engine changes other rows than it must. After
// driver.ErrUnknownOutcome the oracle no longer knows what is true.
func (s *Store) Write(ctx context.Context, o *Oracle, t Toggle, object, subject Object) error {
	tx, err := s.engine.Begin(ctx)
	if err != nil {
		return fmt.Errorf("write %s: %w", t, err)
	}
	write, changes := o.begin(t, object, subject)
	err = s.apply(context.WithoutCancel(ctx), tx, changes)
	if err == nil {
		err = tx.Commit(context.WithoutCancel(ctx))
	} else {
		err = errors.Join(err, tx.Rollback())
	}
	if err != nil {
		if !errors.Is(err, driver.ErrUnknownOutcome) {
			o.void(write, changes)
		}
		return fmt.Errorf("write %s: %w", t, err)
	}
	o.acknowledge(write)
	return nil
}

func (s *Store) apply(ctx context.Context, tx driver.Tx, changes []Change) error {
	for _, c := range changes {
		text := s.text.delete
		if c.Add {
			text = s.text.insert
		}
		n, err := tx.Exec(ctx, text, int64(c.Object), int64(c.Relation), int64(c.Subject))
		if err != nil {
			return err
		}
		if n != 1 {
			return fmt.Errorf("%w: %s: %d rows changed, want 1", bench.ErrMismatch, c.Relationship, n)
		}
	}
	return nil
}
