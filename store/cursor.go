package store

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Cursor is where a page of query results ended. It is opaque text that may be
// stored and sent. It stays valid while the head moves: the next page is read
// at the block of the first, or, on a layout without history, at the new head.
// It ends with a rewind below that block or a prune above it. It belongs to the order
// of its query; versions that sorted by one attribute gave others, which are refused.
type Cursor string

// Number returns the block that the cursor's pages are of.
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

// cursorColumn is an attribute that results are sorted by, and its value.
type cursorColumn struct {
	Name    string               `json:"o"`
	Kind    entity.AttributeKind `json:"k"`
	Desc    bool                 `json:"d,omitempty"`
	Missing bool                 `json:"m,omitempty"`
	Text    string               `json:"t,omitempty"`
	Number  uint64               `json:"n,omitempty"`
}

// column returns what an entity has of an attribute.
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

// Cursor returns the cursor of the page that ends with e, an entity that a
// query with these options yielded with its metadata and attributes. To go on,
// give it as QueryOptions.After to the same query, on this snapshot or a later
// one.
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

// digestPrefix is how many bytes of a digest tell histories apart.
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

// position returns where the page ended.
func (c *cursorState) position() *layout.Position {
	pos := &layout.Position{Sequence: c.Sequence, Key: entity.Key(c.Key)}
	for _, col := range c.Order {
		value := query.Value{Kind: col.Kind, Text: col.Text, Number: col.Number}
		pos.Values = append(pos.Values, layout.SortValue{Missing: col.Missing, Value: value})
	}
	return pos
}

// maxOrder is by how many attributes a query may sort.
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

// sortKind returns the kind of the attribute that an order sorts by.
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
