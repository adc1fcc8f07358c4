package compact

import (
	"bytes"
	"context"
	"slices"

	"github.com/varvedb/varve/internal/layout"
)

// sorter hands out matches in the order of attributes. It goes through the values of the first attribute in their
// order, as postings have them, and reads who has them, as far as the limit asks; who has the same value it sorts or,
// when they are many, goes through the values of the next attribute. Where few candidates are left it reads them all.
type sorter struct {
	*plan
	v     *view
	req   layout.Request
	ranks *ranks
	after []byte   // rank where the page before ended
	log   []ranked // what the overlay has, still to come
	last  []byte   // rank of the last match that came from the tables
	left  int      // of the limit
	out   *output

	spent, review int // versions that were read, and after how many the filter looks up more
}

// ranked is a match with its rank.
type ranked struct {
	v    *version
	rank []byte
	size uint64
}

func byRank(a, b ranked) int { return bytes.Compare(a.rank, b.rank) }

// rank returns a version with its rank, or false when it does not match, was handed out or
// does not begin with some attributes.
func (x *sorter) rank(r *version, begin []byte) (m ranked, ok bool, err error) {
	rec, err := parse(r.data)
	if err != nil || !x.match(r, &rec) {
		return m, false, err
	}
	rank := x.ranks.of(r, &rec)
	if bytes.Compare(rank, x.after) <= 0 || bytes.Compare(rank, x.last) <= 0 || !bytes.HasPrefix(rank, begin) {
		return m, false, nil
	}
	return ranked{r, slices.Clone(rank), rec.size}, true, nil
}

// emit hands out a match of the tables, and before it what the overlay has.
func (x *sorter) emit(ctx context.Context, m ranked) error {
	for len(x.log) > 0 && byRank(x.log[0], m) < 0 {
		next := x.log[0]
		x.log = x.log[1:]
		if err := x.hand(ctx, next); err != nil {
			return err
		}
	}
	x.last = m.rank
	return x.hand(ctx, m)
}

func (x *sorter) hand(ctx context.Context, m ranked) error {
	if err := x.out.add(ctx, m.v, &record{size: m.size}); err != nil {
		return err
	}
	x.left--
	return stoppedIf(x.left == 0)
}

func (x *sorter) emitAll(ctx context.Context, list []ranked) error {
	for _, m := range list {
		if err := x.emit(ctx, m); err != nil {
			return err
		}
	}
	return nil
}
