package crashtest

import (
	"context"
	"io"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// Contents fills a store in this process, for trials that damage the store's
// files or limit its resources.
type Contents struct {
	worker  *worker
	subject subject
	known   []event.Sequenced
}

// NewContents returns contents for a layout, as in Cell.Layout. The same seed
// gives the same contents.
func NewContents(layout string, seed uint64) *Contents {
	w := &worker{workerConfig: workerConfig{Layout: layout, Lossy: true}, out: io.Discard, rng: newRand(seed), journal: &journal{}, checked: true}
	s, _ := w.subject(nil) // there is nothing to read
	return &Contents{worker: w, subject: s}
}

// Fill writes n more steps.
func (c *Contents) Fill(ctx context.Context, db *store.DB, n int) error {
	c.worker.db = db
	if err := c.subject.open(ctx); err != nil {
		return err
	}
	for range n {
		if err := c.subject.grow(ctx); err != nil {
			return err
		}
	}
	if e, ok := c.subject.(*eventWorker); ok {
		all, err := e.readAll(ctx)
		c.known = all
		return err
	}
	return nil
}

// Verify compares every answer. It returns an error of the store, or one that
// wraps ErrViolation, and whether the store lacks the latest steps.
func (c *Contents) Verify(ctx context.Context, db *store.DB) (behind bool, err error) {
	w := *c.worker
	w.db = db
	s, err := w.subject(c.worker.journal.records)
	if err != nil {
		return false, err
	}
	if e, ok := s.(*eventWorker); ok {
		e.known = c.known
	}
	if err := s.open(ctx); err != nil {
		return false, err
	}
	_, _, lost, err := s.compare(ctx)
	return lost > 0, err
}
