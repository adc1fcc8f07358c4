package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/varvedb/varve/internal/accesslog"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
)

// A query is read in parts, so that no client, however slow, holds a reader of
// the store while it takes the results.
const (
	partEntities = 256
	partBytes    = 4 << 20
)

// Query asks for entities.
type Query struct {
	Text   string        // in the query language
	Order  []store.Order // none: newest creation first
	Limit  int           // zero: all that match
	Cursor store.Cursor
	Block  *uint64 // nil: the head; not with a cursor, which knows its block
}

// Page is what a query returned.
type Page struct {
	Count  int
	Block  uint64       // at which it was read
	Cursor store.Cursor // of the next page; empty when there is none
}

// Query gives the entities that match to yield, one after another, with their
// payloads opened; they are the caller's own. It ends with the first error of
// yield. It fails with query.ErrSyntax, store.ErrInvalid, store.ErrBlockRange,
// store.ErrUnsupported, or as seal.Keyring.Open does.
func (s *Service) Query(ctx context.Context, q *Query, yield func(*store.Entity) error) (Page, error) {
	page, err := s.query(ctx, q, yield)
	accesslog.Add(ctx, slog.Int("entities", page.Count), slog.Uint64("block", page.Block))
	if err != nil {
		return page, fmt.Errorf("query: %w", err)
	}
	return page, nil
}

func (s *Service) query(ctx context.Context, q *Query, yield func(*store.Entity) error) (page Page, err error) {
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
		p, err := s.part(ctx, at, expr, opts)
		if err != nil {
			return page, err
		}
		if page.Count == 0 {
			page.Block = p.block
		}
		for _, e := range p.entities {
			if e.Content, err = s.unseal(e.Key, e.Content); err != nil {
				return page, fmt.Errorf("%s: %w", e.Key, err)
			}
			if err := yield(e); err != nil {
				return page, err
			}
			page.Count++
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

// part is some of the results.
type part struct {
	entities []*store.Entity
	block    uint64
	cursor   store.Cursor
	last     bool // nothing comes after it
}

// part reads results until there are enough of them or of their bytes.
func (s *Service) part(ctx context.Context, at uint64, expr query.Expr, opts store.QueryOptions) (p part, err error) {
	snap, err := s.at(ctx, at)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	p.block, p.last = snap.Block(), true
	bytes := 0
	for e, err := range snap.Query(ctx, expr, &opts) {
		if err != nil {
			return p, err
		}
		p.entities = append(p.entities, e)
		if bytes += len(e.Content); bytes >= partBytes {
			p.last = false
			break
		}
	}
	if n := len(p.entities); n > 0 && (n == opts.Limit || !p.last) {
		p.last = false
		p.cursor, err = snap.Cursor(p.entities[n-1], &opts)
	}
	return p, err
}
