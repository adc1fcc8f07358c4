package compact

import (
	"context"
	"errors"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// ahead reads the tables as plans leave them that may be followed or not, wholly or
// in part: what a plan changes is taken from the plan, and the rest from a view in
// which nothing else has changed it.
type ahead struct {
	l    *Layout
	q    driver.Querier
	tree *tree   // of the current postings
	line []*plan // one after another
}

// versions reads rows of current_versions.
func (t ahead) versions(ctx context.Context, ids []int64, see func(*version)) error {
	var stored []any
	for _, id := range ids {
		if v, ok := t.version(id); !ok {
			stored = append(stored, id)
		} else if v != nil {
			see(v)
		}
	}
	return t.l.eachQuery(ctx, t.q, "current_by_id", 1, stored, nil, func(rows driver.Rows) error {
		v, err := scanVersion(rows)
		if err == nil {
			see(v)
		}
		return err
	})
}

// version returns what the plans make of a row of current_versions: nil when it is
// gone.
func (t ahead) version(id int64) (v *version, ok bool) {
	for _, pl := range slices.Backward(t.line) {
		if s := pl.stories[id]; s != nil {
			return s.now, true
		}
	}
	return nil, false
}

// expiring calls see with current entities that expire at or before a block, some at a
// time, until it returns false.
func (t ahead) expiring(ctx context.Context, end int64, see func(ids []int64) bool) error {
	var over [][]page
	for _, pl := range t.line {
		over = append(over, pl.pages[currentTree])
	}
	var value []byte
	var ids []int64
	span := keysWithin(attrExpiration, encodeNumber(0), encodeNumber(uint64(end+1)))
	err := t.l.stream(ctx, t.q, currentTree, t.tree, over, span, func(p *posting) (err error) {
		if _, value, ids, err = p.decode(value[:0], ids[:0]); err != nil {
			return err
		}
		if !see(ids) {
			return errStopped
		}
		return nil
	})
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}
