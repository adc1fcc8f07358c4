package mix

import (
	"fmt"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// Check implements Reads.
func (m *base) Check(op Op, a Answer) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if a.Block > m.head {
		return fmt.Errorf("check %s at block %d: the oracle is at block %d: advance it before the store applies a block", op.Kind, a.Block, m.head)
	}
	var wrong string
	if op.ask.topic == byKey {
		wrong = m.compareEntity(op, a)
	} else {
		wrong = m.compareKeys(op, a)
	}
	if wrong != "" {
		return fmt.Errorf("%w: %s at block %d: %s", ErrMismatch, op.describe(), a.Block, wrong)
	}
	return nil
}

// describe names an operation for messages.
func (op *Op) describe() string {
	if op.Expr == nil {
		return fmt.Sprintf("%s of %s", op.Kind, op.Key)
	}
	return fmt.Sprintf("%s (%s, limit %d)", op.Kind, op.Expr, op.Limit)
}

// compareKeys tells how keys differ from the right ones, or "".
func (o *Oracle) compareKeys(op Op, a Answer) string {
	want := o.answer(&op.ask, a.Block, op.Limit, make([]int32, 0, op.Limit))
	for i := range min(len(want), len(a.Keys)) {
		if got, right := a.Keys[i], o.lives[want[i]].key; got != right {
			return fmt.Sprintf("%d entities, want %d; at position %d is %s, want %s", len(a.Keys), len(want), i, got, right)
		}
	}
	if len(want) != len(a.Keys) {
		return fmt.Sprintf("%d entities, want %d, in the right order as far as they go", len(a.Keys), len(want))
	}
	return ""
}

// compareEntity tells how an entity differs from the right one, or "".
func (o *Oracle) compareEntity(op Op, a Answer) string {
	l, n := o.lookup(op.Key, a.Block)
	switch {
	case n == none && a.Entity == nil && a.Count == 0:
		return ""
	case n == none:
		return fmt.Sprintf("%d entities, want none", a.Count)
	case a.Entity == nil || a.Count != 1:
		return fmt.Sprintf("%d entities, want one", a.Count)
	}
	parts := op.Parts
	if op.Get {
		parts = store.Metadata | store.Attributes | store.Content
	}
	e, v := a.Entity, &o.versions[n]
	if e.Key != op.Key {
		return fmt.Sprintf("the key is %s", e.Key)
	}
	if parts&store.Metadata != 0 {
		if wrong := o.compareMetadata(l, n, e); wrong != "" {
			return wrong
		}
	}
	if parts&store.Attributes != 0 && hashRest(e) != v.rest {
		return fmt.Sprintf("other attributes or content type: %q, %q, %v", e.ContentType, e.StringAttributes, e.NumericAttributes)
	}
	if parts&store.Content != 0 && (len(e.Content) != int(v.size) || hashContent(e.Content) != v.content) {
		return fmt.Sprintf("other content, of %d bytes, want %d", len(e.Content), v.size)
	}
	return ""
}

func (o *Oracle) compareMetadata(l, n int32, e *entity.Entity) string {
	at, v := &o.lives[l], &o.versions[n]
	switch creator, owner := o.creators.values[at.creator], o.owners.values[v.owner]; {
	case e.Creator != creator || e.Owner != owner:
		return fmt.Sprintf("created by %s and owned by %s, want %s and %s", e.Creator, e.Owner, creator, owner)
	case e.Sequence != at.sequence:
		return fmt.Sprintf("sequence %d, want %d", e.Sequence, at.sequence)
	case e.LastModifiedAtBlock != uint64(v.from) || e.Expiration != v.expires:
		return fmt.Sprintf("it lives from block %d to %d, want %d to %d", e.LastModifiedAtBlock, e.Expiration, v.from, v.expires)
	}
	return ""
}
