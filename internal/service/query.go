package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/varvedb/varve/internal/accesslog"
	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// A query is read in parts, so that no client, however slow, occupies a reader
// of the store while it receives the results. When memory is short, parts are
// smaller.
const (
	partEntities = 256
	partBytes    = 1 << 20

	// readBytes is the memory that a query reserves while it reads a part. A
	// payload counts only after it was read, and sixteen concurrent queries had
	// 64 MB uncounted.
	readBytes = 4 << 20
)

// Query selects entities.
type Query struct {
	Text   string        // in the query language
	Order  []store.Order // none: newest creation first
	Limit  int           // zero: all that match
	Cursor store.Cursor
	Block  *uint64 // nil: the head; not with a cursor, which knows its block
}

// Page is the result of a query.
type Page struct {
	Count  int
	Block  uint64       // at which it was read
	Cursor store.Cursor // of the next page; empty when there is none
}

// Query passes the matching entities to yield one by one, with decrypted
// payloads; the caller owns them. Memory is reserved in hold for entities that
// were read and not yet passed on; a nil hold does not count. Query ends with
// the first error of yield. It fails with query.ErrSyntax, store.ErrInvalid,
// store.ErrBlockRange, store.ErrUnsupported, ErrTime, or as seal.Keyring.Open
// and quota.Hold.Take do.
func (s *Service) Query(ctx context.Context, q *Query, hold *quota.Hold, yield func(*entity.Entity) error) (page Page, err error) {
	work := s.worktime(ctx)
	defer work.end()
	defer hold.Release()
	defer func() {
		accesslog.Add(ctx, slog.Int("entities", page.Count), slog.Uint64("block", page.Block))
		if err != nil {
			err = fmt.Errorf("query: %w", work.errorOf(err))
		}
	}()
	expr, err := query.Parse(q.Text)
	if err != nil {
		return page, err
	}
	if q.Block != nil && q.Cursor != "" {
		return page, fmt.Errorf("%w: a cursor knows its block; do not give another", store.ErrInvalid)
	}
	if q.Limit < 0 {
		return page, fmt.Errorf("%w: limit %d", store.ErrInvalid, q.Limit)
	}
	at := uint64(store.Head)
	if q.Block != nil {
		at = *q.Block
	}
	opts := store.QueryOptions{Order: q.Order, After: q.Cursor}
	for {
		opts.Limit = partEntities
		if q.Limit > 0 {
			opts.Limit = min(opts.Limit, q.Limit-page.Count)
		}
		p, err := s.part(work, at, expr, opts, hold)
		if err != nil {
			return page, err
		}
		if page.Count == 0 {
			page.Block = p.block
		}
		if err := s.give(p.entities, hold, &page.Count, yield); err != nil {
			return page, err
		}
		if p.last {
			return page, nil
		}
		if page.Count == q.Limit {
			page.Cursor = p.cursor
			return page, nil
		}
		opts.After, at = p.cursor, store.Head
	}
}

// give passes entities to yield, and releases their memory.
func (s *Service) give(entities []*entity.Entity, hold *quota.Hold, count *int, yield func(*entity.Entity) error) (err error) {
	defer hold.Release()
	hold.Await()
	for i, e := range entities {
		entities[i] = nil
		if e.Content, err = unseal(s.keys.Load(), e.Key, e.Content); err != nil {
			return fmt.Errorf("%s: %w", e.Key, err)
		}
		if err := yield(e); err != nil {
			return err
		}
		*count++
	}
	return nil
}

// part is some of the results.
type part struct {
	entities []*entity.Entity
	block    uint64
	cursor   store.Cursor
	last     bool // nothing comes after it
	bytes    int64
}

// part reads results until there are enough of them or of their bytes, or no
// more memory can be reserved. If not even one result fits, it waits for
// memory, without occupying a reader of the store.
func (s *Service) part(work *worktime, at uint64, expr query.Expr, opts store.QueryOptions, hold *quota.Hold) (p part, err error) {
	for {
		// This limits concurrent reads to those for which there is memory.
		if err := hold.Take(work.ctx, readBytes); err != nil {
			return p, err
		}
		work.run()
		p, wants, err := s.readPart(work.ctx, at, expr, opts, hold)
		work.stand()
		if err != nil || wants == 0 {
			hold.Shrink(p.bytes)
			return p, err
		}
		hold.Release() // a request that holds memory while it waits for more could deadlock
		if err := hold.Take(work.ctx, wants); err != nil {
			return p, err
		}
	}
}

// readPart reads a part. If there is no memory for even the first result, it
// returns how much that one needs.
func (s *Service) readPart(ctx context.Context, at uint64, expr query.Expr, opts store.QueryOptions, hold *quota.Hold) (p part, wants int64, err error) {
	snap, err := s.at(ctx, at)
	if err != nil {
		return p, 0, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	p.block, p.last = snap.Number(), true
	bytes, held := 0, int64(0)
	for e, err := range snap.Query(ctx, expr, &opts) {
		if err != nil {
			return p, 0, err
		}
		if held += answerBytes(e); !hold.Try(held) {
			if p.last = false; len(p.entities) == 0 {
				return p, held, nil
			}
			break
		}
		p.entities, p.bytes = append(p.entities, e), held
		if bytes += len(e.Content); bytes >= partBytes {
			p.last = false
			break
		}
	}
	if n := len(p.entities); n > 0 && (n == opts.Limit || !p.last) {
		p.last = false
		p.cursor, err = snap.Cursor(p.entities[n-1], &opts)
	}
	return p, 0, err
}

// answerBytes is the memory of an entity and of the answer made from it. The
// answer contains the payload in base 64; or, when sealed, it exists twice,
// encrypted and decrypted.
func answerBytes(e *entity.Entity) int64 {
	n := len(e.Content)
	for name, value := range e.StringAttributes {
		n += len(name) + len(value)
	}
	return int64(n) * 5 / 2
}
