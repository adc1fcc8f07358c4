package compact

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// column emits the matches whose rank begins with begin, which is the rank of n
// attributes. Like the other methods of sorter, it reports whether the caller
// wants more.
func (x *sorter) column(ctx context.Context, f filter, begin []byte, n int) bool {
	if n == len(x.req.Order) {
		return x.newest(ctx, f, begin)
	}
	o := x.req.Order[n]
	attr, ok := x.v.attribute(o.Name, o.Kind)
	if !ok || attr.prefix != "" {
		return x.collect(ctx, f, begin)
	}
	if !attr.unknown {
		s := &series{view: x.v, begin: begin, attr: attr, desc: o.Desc, values: valueRange{exact: true}}
		s.skipTo(x, n)
		more, all := x.series(ctx, s, f, n)
		if !more || all {
			return more
		}
		f = and{[]filter{f, not{x.v, x.v.havingRange(attr, valueRange{exact: true})}}}
	}
	return x.column(ctx, f, append(slices.Clip(begin), rankMissing), n+1)
}

// newest emits the matches whose rank begins with begin, the rank of all
// attributes: the newest first.
func (x *sorter) newest(ctx context.Context, f filter, begin []byte) bool {
	if x.v.p.unordered != 0 {
		return x.collect(ctx, f, begin)
	}
	for r, err := range x.v.walk(ctx, f, x.window, x.left) {
		if err != nil {
			return x.fail(err)
		}
		m, ok, err := x.rank(r, begin)
		if err != nil {
			return x.fail(err)
		}
		if ok && !x.emit(m) {
			return false
		}
	}
	return true
}

// collect reads all matches whose rank begins with begin, sorts and emits them. It
// holds all of them or, with a limit, a little more than that many.
func (x *sorter) collect(ctx context.Context, f filter, begin []byte) bool {
	var list []ranked
	var worst []byte // rank of the last one within the limit
	cut := func() {
		slices.SortFunc(list, byRank)
		if left := *x.left; left > 0 && len(list) >= left {
			clear(list[left:])
			list = list[:left]
			worst = list[left-1].rank
		}
	}
	for r, err := range x.v.walk(ctx, f, x.window, new(int)) {
		if err != nil {
			return x.fail(err)
		}
		m, ok, err := x.rank(r, begin)
		if err != nil {
			return x.fail(err)
		}
		if !ok || worst != nil && bytes.Compare(m.rank, worst) >= 0 {
			continue
		}
		if list = append(list, m); *x.left > 0 && len(list) >= 2**x.left+1024 {
			cut()
		}
	}
	cut()
	return x.emit(list...)
}

// series emits the matches that have the attribute of s, the n-th of the order. It
// goes through the values of the attribute as far as the caller wants more. All
// reports whether it emitted the matches without the attribute too.
func (x *sorter) series(ctx context.Context, s *series, f filter, n int) (more, all bool) {
	// Candidates that are few are read and sorted at once.
	few, err := x.candidates(ctx, s, f)
	if err != nil {
		return x.fail(err), false
	}
	if few {
		return x.collect(ctx, f, s.begin), true
	}

	// flush reads the versions of a batch and emits the matches.
	var batch []any        // ids
	var first, last []byte // what the ranks of the first and the last value begin with
	flush := func() bool {
		found, err := x.v.versionsOf(ctx, batch, false)
		if err != nil {
			return x.fail(err)
		}
		var list []ranked
		for _, r := range found {
			m, ok, err := x.rank(r, s.begin)
			if err != nil {
				return x.fail(err)
			}
			// In the past a version may have had a value that is not of this batch.
			if ok && bytes.Compare(m.rank, first) >= 0 && (bytes.Compare(m.rank, last) <= 0 || bytes.HasPrefix(m.rank, last)) {
				list = append(list, m)
			}
		}
		slices.SortFunc(list, byRank)
		x.spent += len(batch)
		batch = batch[:0]
		return x.emit(list...)
	}

	size := lookupCost
	for g, err := range s.groups(ctx) {
		if err != nil {
			return x.fail(err), false
		}
		rank := s.rankOf(g.value)

		// Many entities with one value: by the next attribute.
		if g.large {
			if !flush() {
				return false, false
			}
			has := x.v.havingTerms([]lsm.Term{{Space: s.attr.attr, Value: g.value}}, true)
			if !x.column(ctx, and{[]filter{f, has}}, rank, n+1) {
				return false, false
			}
			continue
		}

		// There are few rows, so collect them in the batch.
		if len(batch) == 0 {
			first = rank
		}
		last = rank
		for _, id := range g.ids {
			if !x.v.overlay().touches(id) {
				batch = append(batch, id)
			}
		}
		if len(batch) < size {
			continue
		}
		if !flush() {
			return false, false
		}
		size = min(2*size, maxPerStatement)

		// Look up more of the filter. Candidates that are few then are read at once.
		few, err := x.candidates(ctx, s, f)
		if err != nil {
			return x.fail(err), false
		}
		if few {
			return x.collect(ctx, f, s.begin), true
		}
	}
	return flush(), false
}

// candidates looks up what takes no longer than all reads so far, and reports
// whether few candidates are left.
func (x *sorter) candidates(ctx context.Context, s *series, f filter) (few bool, err error) {
	if err = f.find(ctx, int64(x.spent/pageCost)); err == nil {
		s.c, err = f.within(ctx, x.v.all())
	}
	return !s.c.negated && s.c.ids.Len() <= max(x.spent, minCandidates), err
}

// series is the values of an attribute in the order of a sorter.
type series struct {
	*view
	begin  []byte // what ranks have before the attribute
	attr   posted
	desc   bool
	c      candidates
	values valueRange // still to come
}

// group is the candidates that have a value, or long texts with one beginning.
type group struct {
	value string
	ids   []int64
	large bool // there are more than maxPerStatement; ids are not complete
}

// groups yields the values that are still to come, in their order.
func (s *series) groups(ctx context.Context) iter.Seq2[group, error] {
	return func(yield func(group, error) bool) {
		for again := true; again && !s.values.none; {
			again = false
			g := group{}
			for p, err := range s.postings(ctx) {
				if err != nil {
					yield(g, err)
					return
				}

				// The next value: the group is complete.
				if value := s.groupOf(string(p.Value)); value != g.value || g.ids == nil {
					if len(g.ids) > 0 && !yield(g, nil) {
						return
					}
					g = group{value: value, ids: make([]int64, 0, 4)}
				}

				// Add the candidates among the ids.
				old := len(g.ids)
				if g.ids, err = p.AppendIDs(g.ids); err != nil {
					yield(g, err)
					return
				}
				kept := g.ids[:old]
				for _, id := range g.ids[old:] {
					if s.c.ids.Has(id) != s.c.negated {
						kept = append(kept, id)
					}
				}
				g.ids = kept

				// Of a large group the other postings are not read.
				if g.large = len(g.ids) > maxPerStatement && !s.long(g.value); g.large {
					again = true
					break
				}
			}
			if len(g.ids) > 0 && !yield(g, nil) {
				return
			}
			if again {
				s.skip(g.value)
			}
		}
	}
}

// skipTo leaves out the values before the one at which the page before ended.
func (s *series) skipTo(x *sorter, n int) {
	if x.req.After == nil || !bytes.HasPrefix(x.after, s.begin) {
		return
	}
	at := x.req.After.Values[n]
	if at.Missing {
		s.values.none = true
		return
	}
	terms, _ := s.attr.terms([]query.Value{at.Value})
	if len(terms) == 0 {
		return
	}
	switch value := s.groupOf(terms[0].Value); {
	case s.desc:
		s.values.hi = s.behind(value)
	default:
		s.values.lo = value
	}
}

// skip leaves out the values up to and with a group.
func (s *series) skip(value string) {
	switch {
	case s.desc:
		s.values.hi = value
		s.values.none = value == ""
	default:
		s.values.lo = s.behind(value)
		s.values.none = s.values.lo == ""
	}
}

// groupOf returns a value or, of a long text, the beginning by which it is sorted.
func (s *series) groupOf(value string) string {
	if s.long(value) {
		return value[:prefixText]
	}
	return value
}

func (s *series) long(value string) bool {
	return s.attr.kind == entity.String && !s.attr.address && len(value) >= prefixText
}

// behind returns the first value above a group, or "" when there is none.
func (s *series) behind(value string) string {
	if s.long(value) {
		return afterPrefix(value)
	}
	return value + "\x00"
}

// rankOf returns what the ranks of a group begin with.
func (s *series) rankOf(value string) []byte {
	rank := slices.Clone(s.begin)
	switch {
	case s.attr.kind == entity.Numeric:
		return appendNumberRank(rank, packed.Ordered(value), s.desc)
	case s.attr.address:
		return appendTextRank(rank, []byte(entity.Address([]byte(value)).String()), s.desc)
	}
	rank = appendTextRank(rank, []byte(value), s.desc)
	if s.long(value) {
		rank = rank[:len(rank)-len(textEnd)]
	}
	return rank
}

// postings yields the postings of the values that are still to come, in their
// order, and in the past the postings of closed versions between them.
func (s *series) postings(ctx context.Context) iter.Seq2[*lsm.Posting, error] {
	var all []iter.Seq2[*lsm.Posting, error]
	for _, span := range s.attr.spans(s.values, s.past) {
		all = append(all, s.l.postings.Walk(ctx, s.q, &s.p.tree, span, s.desc))
	}
	if len(all) == 1 {
		return all[0]
	}
	return func(yield func(*lsm.Posting, error) bool) {
		nextA, stopA := iter.Pull2(all[0])
		defer stopA()
		nextB, stopB := iter.Pull2(all[1])
		defer stopB()
		a, errA, okA := nextA()
		b, errB, okB := nextB()
		for okA || okB {
			if err := errors.Join(errA, errB); err != nil {
				yield(nil, err)
				return
			}
			first := okA
			if okA && okB {
				order := cmp.Or(bytes.Compare(a.Value, b.Value), cmp.Compare(a.Chunk, b.Chunk))
				first = order <= 0 != s.desc
			}
			if first {
				if !yield(a, nil) {
					return
				}
				a, errA, okA = nextA()
				continue
			}
			if !yield(b, nil) {
				return
			}
			b, errB, okB = nextB()
		}
	}
}
