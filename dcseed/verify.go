package dcseed

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varvedb/varve/store/entity"
)

// ErrMismatch: an answer is wrong. Every error of Oracle.Verify wraps it.
var ErrMismatch = errors.New("wrong answer")

// Verify compares a store's answer with the expected one, including the order.
// The error describes the first difference.
func (o *Oracle) Verify(q Query, got Answer) error {
	want := o.Expected(q)
	if q.Kind == NodeState {
		return verifyState(q, want.Entity, got.Entity)
	}
	if slices.Equal(want.Keys, got.Keys) {
		return nil
	}
	at := 0
	for at < min(len(want.Keys), len(got.Keys)) && want.Keys[at] == got.Keys[at] {
		at++
	}
	return fmt.Errorf("%w: %s: %d found, want %d; position %d is %s, want %s", ErrMismatch, q,
		len(got.Keys), len(want.Keys), at, keyAt(got.Keys, at), keyAt(want.Keys, at))
}

func keyAt(keys []entity.Key, at int) string {
	if at == len(keys) {
		return "none"
	}
	return keys[at].String()
}

// verifyState compares the answers to a NodeState.
func verifyState(q Query, want, got *entity.Entity) error {
	switch {
	case want == nil && got == nil:
		return nil
	case want == nil || got == nil:
		return fmt.Errorf("%w: %s: found is %t, want %t", ErrMismatch, q, got != nil, want != nil)
	}
	var differ []string
	for _, part := range []struct {
		name string
		same bool
	}{
		{"key", want.Key == got.Key}, {"owner", want.Owner == got.Owner}, {"creator", want.Creator == got.Creator},
		{"content type", want.ContentType == got.ContentType},
		{"content", !q.Content || bytes.Equal(want.Content, got.Content)},
		{"string attributes", maps.Equal(want.StringAttributes, got.StringAttributes)},
		{"numeric attributes", maps.Equal(want.NumericAttributes, got.NumericAttributes)},
		{"sequence", want.Sequence == got.Sequence}, {"expiration", want.Expiration == got.Expiration},
		{"last change", want.LastModifiedAtBlock == got.LastModifiedAtBlock},
	} {
		if !part.same {
			differ = append(differ, part.name)
		}
	}
	if differ == nil {
		return nil
	}
	return fmt.Errorf("%w: %s: another %s", ErrMismatch, q, strings.Join(differ, ", "))
}
