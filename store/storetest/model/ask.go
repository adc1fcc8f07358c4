package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Question is a query of a snapshot and the way in which its result is read.
type Question struct {
	Expr  query.Expr // nil matches all
	Order []store.Order
	Limit int            // of a page; 0: no limit
	Pages int            // the number of pages to read
	After *entity.Entity // the page begins after it; nil: at the beginning
}

// ErrDiffers: the store's answer is not the model's.
var ErrDiffers = errors.New("another answer than the model's")

// Ask asks a store at the same block a question and returns the number of
// entities that match. The error is the store's, or wraps ErrDiffers.
func (s *Snapshot) Ask(ctx context.Context, of *store.Snapshot, q Question) (matches int, err error) {
	count, err := of.Count(ctx, q.Expr)
	if err != nil {
		return 0, err
	}
	want, err := s.Query(q.Expr, q.Order, 0, nil)
	if err != nil {
		return 0, err
	}
	if count != uint64(len(want)) {
		return 0, fmt.Errorf("%w: the count is %d, should be %d", ErrDiffers, count, len(want))
	}
	matches = len(want)
	opts := store.QueryOptions{Order: q.Order, Limit: q.Limit}
	if q.After != nil {
		if opts.After, err = of.Cursor(q.After, &opts); err != nil {
			return 0, err
		}
		want = slices.DeleteFunc(want, func(e *entity.Entity) bool { return Compare(q.Order, e, q.After) <= 0 })
	}
	for range q.Pages {
		page := want
		if q.Limit > 0 {
			page = page[:min(q.Limit, len(page))]
		}
		found, err := Collect(of.Query(ctx, q.Expr, &opts))
		if err == nil {
			err = Same(page, found)
		}
		if err != nil || q.Limit == 0 || len(found) < q.Limit {
			return matches, err
		}
		want = want[len(found):]
		if opts.After, err = of.Cursor(found[len(found)-1], &opts); err != nil {
			return 0, err
		}
	}
	return matches, nil
}

// Collect returns the elements of a sequence before its end or an error.
func Collect[T any](seq iter.Seq2[T, error]) (list []T, err error) {
	for v, err := range seq {
		if err != nil {
			return list, err
		}
		list = append(list, v)
	}
	return list, nil
}

// Same compares entities. A nil part and an empty one are the same. An error
// wraps ErrDiffers.
func Same(want, got []*entity.Entity) error {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			return fmt.Errorf("%w: %d entities, should be %d; missing is %s", ErrDiffers, len(got), len(want), brief(want[i]))
		case i >= len(want):
			return fmt.Errorf("%w: %d entities, should be %d; too much is %s", ErrDiffers, len(got), len(want), brief(got[i]))
		case !same(want[i], got[i]):
			return fmt.Errorf("%w: place %d has %s, should have %s", ErrDiffers, i, brief(got[i]), brief(want[i]))
		}
	}
	return nil
}

// brief writes an entity without the rest of a long content.
func brief(e *entity.Entity) string {
	short := *e
	short.Content = short.Content[:min(len(short.Content), 8)]
	return fmt.Sprintf("%+v, %d bytes", short, len(e.Content))
}

func same(a, b *entity.Entity) bool {
	return a.Key == b.Key && a.Creator == b.Creator && a.Owner == b.Owner &&
		a.ContentType == b.ContentType && bytes.Equal(a.Content, b.Content) &&
		maps.Equal(a.StringAttributes, b.StringAttributes) && maps.Equal(a.NumericAttributes, b.NumericAttributes) &&
		a.Sequence == b.Sequence && a.LastModifiedAtBlock == b.LastModifiedAtBlock && a.Expiration == b.Expiration
}
