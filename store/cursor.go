package store

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Cursor is where a page of query results ended. It is opaque text that may be
// stored and sent. It stays valid while the head moves: the next page is read
// at the block of the first, or, on a layout without history, at the new head.
// It ends with a rewind below that block or a prune above it.
type Cursor string

// cursorState is what a cursor holds.
type cursorState struct {
	Block    uint64               `json:"b"`
	Digest   []byte               `json:"h"` // of the history up to Block, its first bytes
	Order    string               `json:"o,omitempty"`
	Kind     entity.AttributeKind `json:"k,omitempty"`
	Desc     bool                 `json:"d,omitempty"`
	Missing  bool                 `json:"m,omitempty"`
	Text     string               `json:"t,omitempty"`
	Number   uint64               `json:"n,omitempty"`
	Sequence uint64               `json:"s"`
	Key      []byte               `json:"e"`
}

// Cursor returns the cursor of the page that ends with e, an entity that a
// query with these options yielded with its metadata and attributes. To go on,
// give it as QueryOptions.After to the same query, on this snapshot or a later
// one.
func (s *Snapshot) Cursor(e *Entity, opts *QueryOptions) (Cursor, error) {
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
	page := cursorState{Block: s.at, Digest: s.digest[:digestPrefix]}
	if opts.After != "" {
		if page, err = opts.After.decode(order); err != nil {
			return "", err
		}
	}
	state := cursorState{Block: page.Block, Digest: page.Digest, Order: order.Name, Kind: order.Kind, Desc: order.Desc, Sequence: e.Sequence, Key: e.Key[:]}
	ok := true
	switch {
	case order.Name == "":
	case order.Kind == entity.Numeric:
		state.Number, ok = e.NumericAttribute(order.Name)
	default:
		state.Text, ok = e.StringAttribute(order.Name)
	}
	state.Missing = !ok
	text, err := json.Marshal(state)
	return Cursor(base64.RawURLEncoding.EncodeToString(text)), err
}

// digestPrefix is how many bytes of a digest tell histories apart.
const digestPrefix = 8

// decode reads a cursor for a query with the same order.
func (c Cursor) decode(order Order) (state cursorState, err error) {
	text, err := base64.RawURLEncoding.DecodeString(string(c))
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil || len(state.Key) != len(Key{}) || len(state.Digest) != digestPrefix {
		return state, fmt.Errorf("%w: not a cursor: %q", ErrInvalid, string(c))
	}
	if state.Order != order.Name || state.Kind != order.Kind || state.Desc != order.Desc {
		return state, fmt.Errorf("%w: the cursor belongs to a query in another order", ErrInvalid)
	}
	return state, nil
}

// position returns where the page ended.
func (c *cursorState) position(order Order) *layout.Position {
	return &layout.Position{
		Missing: c.Missing, Sequence: c.Sequence, Key: Key(c.Key),
		Value: query.Value{Kind: order.Kind, Text: c.Text, Number: c.Number},
	}
}

// checkOrder completes an order and refuses a malformed one.
func checkOrder(o Order) (Order, error) {
	if o.Name == "" {
		if o.Kind != 0 || o.Desc {
			return o, fmt.Errorf("%w: an order without an attribute", ErrInvalid)
		}
		return o, nil
	}
	if !utf8.ValidString(o.Name) {
		return o, fmt.Errorf("%w: the attribute to sort by, %q, is not UTF-8", ErrInvalid, o.Name)
	}
	kind, synthetic := entity.SyntheticKind(o.Name)
	switch {
	case synthetic && o.Kind == 0:
		o.Kind = kind
	case synthetic && o.Kind != kind:
		return o, fmt.Errorf("%w: %s is not of the kind asked to sort by", ErrInvalid, o.Name)
	case !synthetic && o.Name[0] == '$':
		return o, fmt.Errorf("%w: unknown attribute %s", ErrInvalid, o.Name)
	case o.Kind != entity.String && o.Kind != entity.Numeric:
		return o, fmt.Errorf("%w: say whether to sort %q as a string or a number", ErrInvalid, o.Name)
	}
	return o, nil
}
