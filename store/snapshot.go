package store

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Snapshot is the store at one block: a stable read view that later blocks do not change. It holds
// a read transaction and one of the bounded readers, so it must be closed. It is not safe for
// concurrent use; open one for each goroutine.
type Snapshot struct {
	ents    *Entities
	reader  driver.Reader
	head    BlockHeader // of the store when the view was taken
	horizon uint64
	at      uint64
	shown   BlockHeader // the last block at or below at
	busy    bool        // a query is running

	layoutView layout.View // cached layout view of block at; see view
	viewAt     uint64
}

// Head, given to Entities.At, means the last block.
const Head = math.MaxUint64

// At opens a snapshot at a block, or at the last one with Head. It fails with ErrBlockRange when
// the block is above the head or was pruned, and with ErrUnsupported when it is below the head and
// the layout keeps no history. It waits for a free reader until ctx is done.
//
// The snapshot is of the store as it is when At returns, on every engine: a
// block that is applied, rewound or pruned later is not seen. So the first read
// cannot open it. A caller who knows the keys that Get is about to read names
// them: a server sends these entities in the round trip that opens the
// snapshot. Other engines ignore keys.
func (e *Entities) At(ctx context.Context, block uint64, keys ...entity.Key) (*Snapshot, error) {
	r, err := driver.View(ctx, e.db.engine, func() []driver.Prefetch { return e.prefetchView(block, keys) })
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	s := &Snapshot{ents: e, reader: r}
	if err := s.position(context.WithoutCancel(ctx), block); err != nil {
		return nil, fmt.Errorf("snapshot: %w", errors.Join(err, r.Close()))
	}
	return s, nil
}

// prefetchView returns the queries that a snapshot is expected to run. It
// assumes that the head has not changed since it was last read.
func (e *Entities) prefetchView(block uint64, keys []entity.Key) (expected []driver.Prefetch) {
	if head := e.lastHead.Load(); block == Head {
		block = head
	} else if block != head {
		expected = append(expected, e.db.meta.Prefetch("block_at_or_below", int64(min(block, entity.MaxBlock))))
	}
	if l, ok := e.layout.(layout.Prefetched); ok {
		expected = append(expected, l.PrefetchView(block, keys)...)
	}
	return expected
}

// views opens several snapshots of the same head for reading the whole store,
// even while a writer is busy. It takes all readers or none. When the head
// moves between two views it tries again, at last while it holds the writer.
// This can fail on a store that is open for reading only while another process
// writes to it.
func (e *Entities) views(ctx context.Context, n int) ([]*Snapshot, error) {
	for try := range maxViewTries {
		list, err := e.viewsOnce(ctx, n, try >= freeViewTries && !e.db.ro)
		if err != nil {
			return nil, fmt.Errorf("snapshots: %w", err)
		}
		if list != nil {
			return list, nil
		}
	}
	return nil, fmt.Errorf("snapshots: %w: another process moved the head each of %d times that %d views of it were opened; try again", ErrConflict, maxViewTries, n)
}

const (
	freeViewTries = 8  // how often views are opened before writers are made to wait
	maxViewTries  = 64 // how often views are opened
)

// viewsOnce returns nil when the views have different heads.
func (e *Entities) viewsOnce(ctx context.Context, n int, holdWriter bool) (list []*Snapshot, err error) {
	if holdWriter {
		tx, err := e.db.engine.Begin(ctx)
		if err != nil {
			return nil, err
		}
		defer tx.Rollback()
	}
	readers, err := e.db.engine.Snapshots(ctx, n)
	if err != nil {
		return nil, err
	}
	same := true
	for _, r := range readers {
		s := &Snapshot{ents: e, reader: r}
		err := driver.LiftTimeouts(context.WithoutCancel(ctx), r)
		if err == nil {
			err = s.position(context.WithoutCancel(ctx), Head)
		}
		if err != nil {
			return nil, errors.Join(err, driver.CloseReaders(readers))
		}
		list = append(list, s)
		same = same && s.head == list[0].head && s.horizon == list[0].horizon
	}
	if !same {
		return nil, driver.CloseReaders(readers)
	}
	return list, nil
}

func closeViews(list []*Snapshot) error {
	var errs []error
	for _, s := range list {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

func (s *Snapshot) position(ctx context.Context, block uint64) (err error) {
	if s.head, s.horizon, err = s.ents.db.meta.headAndHorizon(ctx, s.reader); err != nil {
		return err
	}
	s.ents.lastHead.Store(s.head.Number)
	if block == Head {
		block = s.head.Number
	}
	s.at, s.shown = block, s.head
	if err := s.readable(block); err != nil || block == s.head.Number {
		return err
	}
	s.shown, err = s.ents.db.meta.headAt(ctx, s.reader, block)
	return err
}

// readable checks that a block can be read in this view.
func (s *Snapshot) readable(block uint64) error {
	switch {
	case block > s.head.Number:
		return fmt.Errorf("block %d: %w: the head is %d", block, ErrBlockRange, s.head.Number)
	case block < s.head.Number && !s.ents.layout.Temporal():
		return fmt.Errorf("block %d: layout %s keeps only the head, which is %d: %w", block, s.ents.layout.Name(), s.head.Number, ErrUnsupported)
	case block < s.horizon:
		return fmt.Errorf("block %d: %w: versions before block %d were pruned", block, ErrBlockRange, s.horizon)
	}
	return nil
}

// Number returns the block that the snapshot shows.
func (s *Snapshot) Number() uint64 { return s.at }

// Head returns the head of the store when the snapshot was opened.
func (s *Snapshot) Head() BlockHeader { return s.head }

// Horizon returns the oldest readable block; zero unless the store, or the
// store it was imported from, was pruned.
func (s *Snapshot) Horizon() uint64 { return s.horizon }

// OldestHeader returns the first readable block, which is at or above the
// horizon; in a layout without history it is the head. It is Empty when there
// is none.
func (s *Snapshot) OldestHeader(ctx context.Context) (h BlockHeader, err error) {
	defer wrap(&err, "oldest header")
	if err := s.idle(ctx); err != nil || !s.ents.layout.Temporal() {
		return s.head, err
	}
	args := []any{int64(min(s.horizon, entity.MaxBlock))}
	return s.ents.db.meta.queryHead(context.WithoutCancel(ctx), s.reader, "block_at_or_above", args)
}

// Headers returns the blocks from one number to another, up to the snapshot's
// head. If a number has another digest than before, the store was rewound in
// between.
func (s *Snapshot) Headers(ctx context.Context, from, to uint64) (list []BlockHeader, err error) {
	defer wrap(&err, "headers")
	if err := s.idle(ctx); err != nil {
		return nil, err
	}
	return s.ents.db.meta.blocksBetween(context.WithoutCancel(ctx), s.reader, from, to, math.MaxInt64)
}

// view returns the layout's view of a block.
func (s *Snapshot) view(ctx context.Context, at uint64) (layout.View, error) {
	if s.layoutView != nil && s.viewAt == at {
		return s.layoutView, nil
	}
	v, err := s.ents.layout.View(ctx, s.reader, at)
	if err == nil {
		s.layoutView, s.viewAt = v, at
	}
	return v, err
}

// Close closes the view. A second Close does nothing.
func (s *Snapshot) Close() error { return s.reader.Close() }

// Get returns an entity, or ErrNotFound when it is not visible at the block.
func (s *Snapshot) Get(ctx context.Context, key entity.Key) (*entity.Entity, error) {
	if err := s.idle(ctx); err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	ctx = context.WithoutCancel(ctx)
	view, err := s.view(ctx, s.at)
	var e *entity.Entity
	if err == nil {
		e, err = view.Get(ctx, key)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s at block %d: %w", key, s.at, err)
	}
	return e, nil
}

// Count returns how many entities match; a nil expression matches all.
func (s *Snapshot) Count(ctx context.Context, q query.Expr) (n uint64, err error) {
	defer wrap(&err, "count")
	if err := errors.Join(s.idle(ctx), checkExpr(q)); err != nil {
		return 0, err
	}
	view, err := s.view(ctx, s.at)
	if err != nil {
		return 0, err
	}
	return view.Count(ctx, q)
}

// QueryOptions configure order, number and parts of the results. The zero value
// returns everything, newest creation first.
type QueryOptions struct {
	// Order sorts by the first attribute, where that is equal or missing by the
	// second, and so on; finally, or if Order is empty, by newest creation and
	// then by key. It has at most 8 attributes, none of them twice with the
	// same kind.
	Order []Order
	Limit int    // 0: no limit
	After Cursor // continue where the page that gave this cursor ended
	Parts Parts  // zero: everything
}

// Order sorts the results of a query by one attribute. Entities without it come
// last, even in descending order.
type Order struct {
	Name string
	Kind entity.AttributeKind // may be zero for attributes that begin with $
	Desc bool
}

// Parts selects the parts of the found entities to fetch, in addition to their
// keys. Zero means everything.
type Parts uint8

// The parts.
const (
	Metadata   Parts = 1 << iota // owner, creator, blocks, sequence, content type
	Attributes                   // the user's attributes
	Content                      // the payload
)

func (p Parts) has(part Parts) bool { return p == 0 || p&part != 0 }

// Query streams the entities that match; a nil expression matches all. The
// yielded entity belongs to the caller. The snapshot cannot be used for
// anything else until the sequence ends. An error ends it.
func (s *Snapshot) Query(ctx context.Context, q query.Expr, opts *QueryOptions) iter.Seq2[*entity.Entity, error] {
	return exclusive(ctx, s, "query", func(yield func(*entity.Entity) bool) error {
		return s.query(ctx, q, opts, yield)
	})
}

func (s *Snapshot) query(ctx context.Context, q query.Expr, opts *QueryOptions, yield func(*entity.Entity) bool) error {
	if opts == nil {
		opts = &QueryOptions{}
	}
	if err := checkExpr(q); err != nil {
		return err
	}
	at, req, err := s.request(ctx, q, opts)
	if err != nil {
		return err
	}
	view, err := s.view(ctx, at)
	if err != nil {
		return err
	}
	for e, err := range view.Query(ctx, req) {
		if err != nil {
			return err
		}
		trim(e, opts.Parts)
		if !yield(e) {
			return nil
		}
	}
	return nil
}

// request completes a query's options and determines the block that it reads:
// the cursor's, if there is one, so that all pages are of one block while the
// head moves.
func (s *Snapshot) request(ctx context.Context, q query.Expr, opts *QueryOptions) (at uint64, req layout.Request, err error) {
	if opts.Limit < 0 {
		return 0, req, fmt.Errorf("%w: a limit of %d, want zero or more", ErrInvalid, opts.Limit)
	}
	order, err := checkOrder(opts.Order)
	if err != nil {
		return 0, req, err
	}
	req = layout.Request{Expr: q, Limit: opts.Limit, Attributes: opts.Parts.has(Attributes), Content: opts.Parts.has(Content)}
	for _, o := range order {
		req.Order = append(req.Order, layout.Order(o))
	}
	if opts.After == "" {
		return s.at, req, nil
	}
	page, err := opts.After.decode(order)
	if err != nil {
		return 0, req, err
	}
	req.After = page.position()
	if !s.ents.layout.Temporal() {
		return s.at, req, nil
	}
	return page.Block, req, s.continues(ctx, page)
}

// continues checks that the cursor's history is the one in this view, not
// rewound below the cursor's block since.
func (s *Snapshot) continues(ctx context.Context, page cursorState) error {
	if page.Block > s.head.Number {
		return fmt.Errorf("%w: %w: the cursor is of block %d, the head is %d", ErrBlockRange, ErrRewound, page.Block, s.head.Number)
	}
	if err := s.readable(page.Block); err != nil {
		return err
	}
	head, err := s.head, error(nil)
	if page.Block != head.Number {
		head, err = s.ents.db.meta.headAt(ctx, s.reader, page.Block)
	}
	if err == nil && !bytes.Equal(head.Digest[:digestPrefix], page.Digest) {
		err = fmt.Errorf("%w: %w: the store was rewound below block %d after the cursor was given", ErrBlockRange, ErrRewound, page.Block)
	}
	return err
}

// checkExpr refuses a malformed query; nil is none.
func checkExpr(q query.Expr) error {
	if q == nil {
		return nil
	}
	if err := query.Check(q); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// idle refuses another use of the snapshot while a result is open.
func (s *Snapshot) idle(ctx context.Context) error {
	if s.busy {
		return fmt.Errorf("%w: the snapshot is still running a query; finish it or open another snapshot", ErrInvalid)
	}
	return ctx.Err()
}

// trim removes the parts that were not requested.
func trim(e *entity.Entity, parts Parts) {
	if !parts.has(Attributes) {
		e.StringAttributes, e.NumericAttributes = nil, nil
	}
	if !parts.has(Content) {
		e.Content = nil
	}
	if !parts.has(Metadata) {
		*e = entity.Entity{
			Key: e.Key, Content: e.Content,
			StringAttributes: e.StringAttributes, NumericAttributes: e.NumericAttributes,
		}
	}
}

// Cursor is the end of a page of query results, as opaque text that may be
// stored and sent. It stays valid while the head moves: the next page is read
// at the block of the first, or, on a layout without history, at the new head.
// It becomes invalid by a rewind below that block or a prune above it. It
// belongs to the order of its query. Cursors of older versions of this package,
// which sorted by one attribute, are refused.
type Cursor string

// Number returns the block of the cursor's pages.
func (c Cursor) Number() (uint64, error) {
	state, err := c.state()
	if err != nil {
		return 0, fmt.Errorf("cursor: %w", err)
	}
	return state.Block, nil
}

// cursorState is the content of a cursor.
type cursorState struct {
	Block    uint64         `json:"b"`
	Digest   []byte         `json:"h"` // of the history up to Block, its first bytes
	Order    []cursorColumn `json:"o,omitempty"`
	Sequence uint64         `json:"s"`
	Key      []byte         `json:"e"`
}

// cursorColumn is an attribute to sort by, and its value.
type cursorColumn struct {
	Name    string               `json:"o"`
	Kind    entity.AttributeKind `json:"k"`
	Desc    bool                 `json:"d,omitempty"`
	Missing bool                 `json:"m,omitempty"`
	Text    string               `json:"t,omitempty"`
	Number  uint64               `json:"n,omitempty"`
}

// column returns an entity's value of an attribute to sort by.
func column(o Order, e *entity.Entity) cursorColumn {
	c := cursorColumn{Name: o.Name, Kind: o.Kind, Desc: o.Desc}
	var ok bool
	if o.Kind == entity.Numeric {
		c.Number, ok = e.NumericAttribute(o.Name)
	} else {
		c.Text, ok = e.StringAttribute(o.Name)
	}
	c.Missing = !ok
	return c
}

// Cursor returns the cursor of a page that ends with e, an entity that a query
// with these options yielded with metadata and attributes. To continue, pass it
// as QueryOptions.After to the same query, on this snapshot or a later one.
func (s *Snapshot) Cursor(e *entity.Entity, opts *QueryOptions) (Cursor, error) {
	if opts == nil {
		opts = &QueryOptions{}
	}
	order, err := checkOrder(opts.Order)
	if err != nil {
		return "", err
	}
	if !opts.Parts.has(Metadata) || !opts.Parts.has(Attributes) {
		return "", fmt.Errorf("cursor: %w: the page was read without metadata or attributes", ErrInvalid)
	}
	page := cursorState{Block: s.at, Digest: s.shown.Digest[:digestPrefix]}
	if opts.After != "" {
		if page, err = opts.After.decode(order); err != nil {
			return "", err
		}
	}
	state := cursorState{Block: page.Block, Digest: page.Digest, Sequence: e.Sequence, Key: e.Key[:]}
	for _, o := range order {
		state.Order = append(state.Order, column(o, e))
	}
	text, err := json.Marshal(state)
	return Cursor(base64.RawURLEncoding.EncodeToString(text)), err
}

// digestPrefix is how many bytes of a digest a cursor keeps to distinguish
// histories.
const digestPrefix = 8

// state reads a cursor.
func (c Cursor) state() (state cursorState, err error) {
	text, err := base64.RawURLEncoding.DecodeString(string(c))
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil || len(state.Key) != len(entity.Key{}) || len(state.Digest) != digestPrefix {
		return state, fmt.Errorf("%w: not a cursor, or one of another version: %q; begin with the first page", ErrInvalid, string(c))
	}
	return state, nil
}

// decode reads a cursor for a query with the same order.
func (c Cursor) decode(order []Order) (state cursorState, err error) {
	if state, err = c.state(); err != nil {
		return state, err
	}
	same := func(c cursorColumn, o Order) bool { return Order{c.Name, c.Kind, c.Desc} == o }
	if !slices.EqualFunc(state.Order, order, same) {
		return state, fmt.Errorf("%w: the cursor belongs to a query in another order", ErrInvalid)
	}
	return state, nil
}

// position converts the cursor for the layout.
func (c *cursorState) position() *layout.Position {
	pos := &layout.Position{Sequence: c.Sequence, Key: entity.Key(c.Key)}
	for _, col := range c.Order {
		value := query.Value{Kind: col.Kind, Text: col.Text, Number: col.Number}
		pos.Values = append(pos.Values, layout.SortValue{Missing: col.Missing, Value: value})
	}
	return pos
}

// maxOrder is the maximum number of attributes to sort by.
const maxOrder = 8

// checkOrder completes an order and refuses a malformed one.
func checkOrder(order []Order) ([]Order, error) {
	if len(order) > maxOrder {
		return nil, fmt.Errorf("%w: sorted by %d attributes, the limit is %d", ErrInvalid, len(order), maxOrder)
	}
	list := make([]Order, 0, len(order))
	for _, o := range order {
		kind, err := sortKind(o)
		if err != nil {
			return nil, err
		}
		o.Kind = kind
		if slices.ContainsFunc(list, func(other Order) bool { return other.Name == o.Name && other.Kind == kind }) {
			return nil, fmt.Errorf("%w: sorted by %q twice", ErrInvalid, o.Name)
		}
		list = append(list, o)
	}
	return list, nil
}

// sortKind returns the kind of an attribute to sort by.
func sortKind(o Order) (entity.AttributeKind, error) {
	kind, synthetic := entity.SyntheticKind(o.Name)
	switch {
	case o.Name == "":
		return 0, fmt.Errorf("%w: an order without an attribute", ErrInvalid)
	case !utf8.ValidString(o.Name):
		return 0, fmt.Errorf("%w: the attribute to sort by, %q, is not UTF-8", ErrInvalid, o.Name)
	case synthetic && o.Kind == 0:
		return kind, nil
	case synthetic && o.Kind != kind:
		return 0, fmt.Errorf("%w: %s is not of the kind asked to sort by", ErrInvalid, o.Name)
	case !synthetic && o.Name[0] == '$':
		return 0, fmt.Errorf("%w: unknown attribute %s", ErrInvalid, o.Name)
	case o.Kind != entity.String && o.Kind != entity.Numeric:
		return 0, fmt.Errorf("%w: say whether to sort %q as a string or a number", ErrInvalid, o.Name)
	}
	return o.Kind, nil
}
