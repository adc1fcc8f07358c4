package compact

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/varvedb/varve/internal/layout"
)

// sorter hands out matches in the order of attributes. It goes through the values of the
// first attribute in their order, as postings have them, and reads who has them, as far as
// the limit asks; who has the same value it sorts or, when they are many, goes through the
// values of the next attribute. Where few candidates are left it reads them all.
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

// sorted hands out matches in the order of attributes.
func (v *view) sorted(ctx context.Context, p *plan, req layout.Request, out *output) error {
	x := &sorter{
		plan: p, v: v, req: req, ranks: newRanks(req.Order, v.names), after: rankOf(req.Order, req.After),
		left: req.Limit, out: out,
	}
	for _, r := range v.unmerged(req.Expr) {
		if err := ctx.Err(); err != nil { // as in scan
			return err
		}
		if !r.visible(v.at) {
			continue
		}
		if m, ok, err := x.rank(r, nil); err != nil {
			return err
		} else if ok {
			x.log = append(x.log, m)
		}
	}
	slices.SortFunc(x.log, byRank)
	err := x.column(ctx, p.filter, nil, 0)
	for ; err == nil && len(x.log) > 0; x.log = x.log[1:] {
		err = x.hand(ctx, x.log[0])
	}
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

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

// collect hands out the matches whose rank has a beginning, sorted. It holds all of them, or
// with a limit a little more than that many.
func (x *sorter) collect(ctx context.Context, f filter, begin []byte) error {
	var list []ranked
	var worst []byte // when there are enough, the rank that others must be before
	cut := func() {
		slices.SortFunc(list, byRank)
		if x.left > 0 && len(list) >= x.left {
			clear(list[x.left:])
			list = list[:x.left]
			worst = list[x.left-1].rank
		}
	}
	err := x.v.walk(ctx, f, x.window, new(int), func(r *version) error {
		m, ok, err := x.rank(r, begin)
		if err != nil || !ok || worst != nil && bytes.Compare(m.rank, worst) >= 0 {
			return err
		}
		if list = append(list, m); x.left > 0 && len(list) >= 2*x.left+1024 {
			cut()
		}
		return nil
	})
	if err != nil {
		return err
	}
	cut()
	return x.emitAll(ctx, list)
}

func (x *sorter) emitAll(ctx context.Context, list []ranked) error {
	for _, m := range list {
		if err := x.emit(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// newest hands out the matches whose rank has a beginning, of all attributes.
func (x *sorter) newest(ctx context.Context, f filter, begin []byte) error {
	if x.v.p.unordered != 0 {
		return x.collect(ctx, f, begin)
	}
	return x.v.walk(ctx, f, x.window, &x.left, func(r *version) error {
		m, ok, err := x.rank(r, begin)
		if err != nil || !ok {
			return err
		}
		return x.emit(ctx, m)
	})
}

// column hands out the matches whose rank has a beginning, of so many attributes.
func (x *sorter) column(ctx context.Context, f filter, begin []byte, n int) error {
	if n == len(x.req.Order) {
		return x.newest(ctx, f, begin)
	}
	o := x.req.Order[n]
	attr, ok := x.v.attribute(o.Name, o.Kind)
	if !ok || attr.prefix != "" {
		return x.collect(ctx, f, begin)
	}
	if !attr.unknown {
		s := &series{sorter: x, f: f, begin: begin, n: n, desc: o.Desc, attr: attr, values: valueRange{exact: true}, size: firstRead}
		if done, err := s.run(ctx); err != nil || done {
			return err
		}
		f = and{[]filter{s.f, not{x.v, x.v.havingRange(attr, valueRange{exact: true})}}}
	}
	return x.column(ctx, f, append(slices.Clip(begin), rankMissing), n+1)
}
