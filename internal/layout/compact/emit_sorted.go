package compact

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"github.com/varvedb/varve/internal/layout"
)

// sorter yields matches in the order of attributes. It goes through the values of
// the first attribute in their order, as postings have them, and reads the
// entities that have them, as far as the limit asks. Entities with the same value
// it sorts or, when they are many, goes through the values of the next attribute.
// When few candidates are left it reads them all.
type sorter struct {
	*plan
	v     *view
	req   layout.Request
	ranks *ranks
	after []byte   // rank at which the page before ended
	log   []ranked // matches of the overlay that are not yielded yet
	last  []byte   // rank of the last match that came from the tables
	left  *int     // as scan has it
	yield func(match, error) bool

	spent int // versions that were read
}

// ranked is a match with its rank.
type ranked struct {
	match
	rank []byte
}

func byRank(a, b ranked) int { return bytes.Compare(a.rank, b.rank) }

// sorted yields the versions that match a plan in the order of attributes. Left is
// as scan has it.
func (v *view) sorted(ctx context.Context, p *plan, req layout.Request, left *int) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) {
		x := &sorter{
			plan: p, v: v, req: req, ranks: newRanks(req.Order, v.names), after: rankOf(req.Order, req.After),
			left: left, yield: yield,
		}

		// Sort the matches of the overlay.
		for _, r := range v.unmerged(req.Expr) {
			if !r.visible(v.at) {
				continue
			}
			m, ok, err := x.rank(r, nil)
			if err == nil {
				err = ctx.Err() // as in scan
			}
			if err != nil {
				x.fail(err)
				return
			}
			if ok {
				x.log = append(x.log, m)
			}
		}
		slices.SortFunc(x.log, byRank)

		// Yield the matches of the tables, and between them those of the overlay.
		if !x.column(ctx, p.filter, nil, 0) {
			return
		}
		for _, m := range x.log {
			if !yield(m.match, nil) {
				return
			}
		}
	}
}

// fail yields an error and returns false.
func (x *sorter) fail(err error) bool {
	x.yield(match{}, err)
	return false
}

// rank returns a version with its rank, or false when it does not match, was
// yielded already, or its rank does not begin with the given attributes.
func (x *sorter) rank(r *version, begin []byte) (m ranked, ok bool, err error) {
	rec, err := parse(r.data)
	if err != nil || !x.match(r, &rec) {
		return m, false, err
	}
	rank := x.ranks.of(r, &rec)
	if bytes.Compare(rank, x.after) <= 0 || bytes.Compare(rank, x.last) <= 0 || !bytes.HasPrefix(rank, begin) {
		return m, false, nil
	}
	return ranked{match{r, rec}, slices.Clone(rank)}, true, nil
}

// emit yields matches of the tables, which are sorted, and before each of them the
// matches of the overlay with lower ranks.
func (x *sorter) emit(list ...ranked) bool {
	for _, m := range list {
		for len(x.log) > 0 && byRank(x.log[0], m) < 0 {
			next := x.log[0]
			x.log = x.log[1:]
			if !x.yield(next.match, nil) {
				return false
			}
		}
		x.last = m.rank
		if !x.yield(m.match, nil) {
			return false
		}
	}
	return true
}
