package model

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Snapshot is a Model at one block.
type Snapshot struct {
	block   uint64
	visible []*entity.Entity // newest creation first, then by key
}

// At returns the model at a block, or the error that a store must return.
func (m *Model) At(block uint64) (*Snapshot, error) {
	head := m.Head()
	if block == store.Head {
		block = head.Number
	}
	switch {
	case block > head.Number:
		return nil, store.ErrBlockRange
	case block < head.Number && m.HeadOnly:
		return nil, store.ErrUnsupported
	case block < m.horizon:
		return nil, store.ErrBlockRange
	}
	s := &Snapshot{block: block}
	for _, e := range m.stateAt(block).entities {
		if block < e.Expiration {
			s.visible = append(s.visible, e)
		}
	}
	slices.SortFunc(s.visible, func(a, b *entity.Entity) int { return Compare(nil, a, b) })
	return s, nil
}

// Block returns the block that the snapshot shows.
func (s *Snapshot) Block() uint64 { return s.block }

// Visible returns all entities, newest creation first.
func (s *Snapshot) Visible() []*entity.Entity { return s.visible }

// Get returns an entity or store.ErrNotFound.
func (s *Snapshot) Get(key entity.Key) (*entity.Entity, error) {
	for _, e := range s.visible {
		if e.Key == key {
			return e, nil
		}
	}
	return nil, store.ErrNotFound
}

// Query returns the entities that match, in an order. If after is given, only
// entities after it are returned, and if limit is above zero, at most that
// many. A nil expression matches all.
func (s *Snapshot) Query(expr query.Expr, order []store.Order, limit int, after *entity.Entity) ([]*entity.Entity, error) {
	if expr != nil && query.Check(expr) != nil {
		return nil, store.ErrInvalid
	}
	found := slices.DeleteFunc(slices.Clone(s.visible), func(e *entity.Entity) bool {
		return expr != nil && !query.Match(expr, e)
	})
	slices.SortFunc(found, func(a, b *entity.Entity) int { return Compare(order, a, b) })
	if after != nil {
		found = slices.DeleteFunc(found, func(e *entity.Entity) bool { return Compare(order, e, after) <= 0 })
	}
	if limit > 0 && limit < len(found) {
		found = found[:limit]
	}
	return found, nil
}

// Count returns how many entities match.
func (s *Snapshot) Count(expr query.Expr) (uint64, error) {
	found, err := s.Query(expr, nil, 0, nil)
	return uint64(len(found)), err
}

// Compare orders two entities: by the attributes of the order, entities without
// an attribute last; then by creation, the newest first; then by key.
func Compare(order []store.Order, a, b *entity.Entity) int {
	for _, o := range order {
		if c := compareAttribute(o, a, b); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(b.Sequence, a.Sequence), bytes.Compare(a.Key[:], b.Key[:]))
}

func compareAttribute(order store.Order, a, b *entity.Entity) int {
	var c int
	var hasA, hasB bool
	if orderKind(order) == entity.Numeric {
		var x, y uint64
		x, hasA = a.NumericAttribute(order.Name)
		y, hasB = b.NumericAttribute(order.Name)
		c = cmp.Compare(x, y)
	} else {
		var x, y string
		x, hasA = a.StringAttribute(order.Name)
		y, hasB = b.StringAttribute(order.Name)
		c = cmp.Compare(x, y)
	}
	switch {
	case !hasA && !hasB:
		return 0
	case !hasA:
		return 1
	case !hasB:
		return -1
	case order.Desc:
		return -c
	}
	return c
}

func orderKind(order store.Order) entity.AttributeKind {
	if kind, synthetic := entity.SyntheticKind(order.Name); synthetic {
		return kind
	}
	return order.Kind
}
