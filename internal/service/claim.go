package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Origin is recorded in a store when a service creates its blocks.
const Origin = "service"

// claim makes the service the only writer of its store: it takes the lease, if
// the engine has one. It refuses a store with blocks from elsewhere, because
// the service's blocks would continue them as if they were of the same chain.
func (s *Service) claim(ctx context.Context) (err error) {
	s.lease, err = driver.TakeLease(ctx, s.db.Engine())
	switch {
	case errors.Is(err, store.ErrUnsupported): // the engine declares the gap
	case errors.Is(err, store.ErrLocked):
		return fmt.Errorf("%w; another process writes this store: serve it with --read-only", err)
	case err != nil:
		return err
	}
	s.leased = s.lease != nil
	head, err := s.ents.Head(ctx)
	if err != nil {
		return err
	}
	origin, err := s.ents.Origin(ctx)
	switch {
	case err != nil:
		return err
	case origin == Origin:
		return nil
	case s.opts.Adopt, head.Empty && origin == "":
		return s.ents.SetOrigin(ctx, Origin)
	case origin == "":
		origin = "a chain or another program"
	}
	return driver.Of(store.ErrHistory, fmt.Errorf("the store's blocks up to %d come from %s, and a write would fork them; serve it with --read-only, give a new store, or go on from here with --adopt", head.Number, origin))
}

// release releases the lease.
func (s *Service) release() {
	if s.lease != nil {
		_ = s.lease.Release() // it ends with the process in any case
		s.lease = nil
	}
}

// keep checks that the lease is still held, and takes another if it was lost.
// Until it has one, every write is refused.
func (s *Service) keep(ctx context.Context) {
	if s.lease == nil && s.leaseError == nil {
		return
	}
	if s.lease != nil {
		if s.lease.Held(ctx) == nil || ctx.Err() != nil {
			return
		}
		s.release()
	}
	s.lease, s.leaseError = driver.TakeLease(ctx, s.db.Engine())
}
