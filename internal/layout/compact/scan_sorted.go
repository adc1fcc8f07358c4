package compact

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

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
		s := &series{sorter: x, f: f, begin: begin, n: n, desc: o.Desc, attr: attr, values: valueRange{exact: true}, size: few}
		if done, err := s.run(ctx); err != nil || done {
			return err
		}
		f = and{[]filter{s.f, not{x.v, x.v.havingRange(attr, valueRange{exact: true})}}}
	}
	return x.column(ctx, f, append(slices.Clip(begin), rankMissing), n+1)
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

// series goes through the values of an attribute, in the order of a sorter.
type series struct {
	*sorter
	f     filter
	begin []byte // of ranks: what comes before the attribute
	n     int    // the attribute's place in the order
	desc  bool
	attr  posted

	c      candidates // of f, as far as they are known
	values valueRange // still to come

	group string  // the value that is gone through, or what several begin with
	ids   []int64 // candidates that have it
	batch []any   // candidates of groups before it, which are to be read
	from  []byte  // what ranks of the first of them begin with
	to    []byte  // and those of the last
	size  int     // how many are read together
}

var (
	errSkip      = errors.New("skip")      // a walk goes on behind the group
	errCollected = errors.New("collected") // all that is left was handed out
)

// run hands out what has the attribute. It tells whether it has handed out what has not as well.
func (s *series) run(ctx context.Context) (done bool, err error) {
	if err = s.find(ctx); err != nil {
		return false, err
	}
	if !s.c.negated && s.c.ids.Len() <= enough {
		return true, s.collect(ctx, s.f, s.begin)
	}
	s.start()
	for err = errSkip; errors.Is(err, errSkip); {
		s.group, s.ids = "", nil
		err = s.postings(ctx, s.posting(ctx))
	}
	if err == nil {
		err = s.close(ctx)
	}
	if err == nil {
		err = s.flush(ctx)
	}
	if errors.Is(err, errCollected) {
		return true, nil
	}
	return false, err
}

// start leaves out the values before that of the page's end.
func (s *series) start() {
	if s.req.After == nil || !bytes.HasPrefix(s.after, s.begin) {
		return
	}
	at := s.req.After.Values[s.n]
	if at.Missing {
		s.values.none = true
		return
	}
	terms, _ := s.attr.terms([]query.Value{at.Value})
	if len(terms) == 0 {
		return
	}
	switch group := s.groupOf(terms[0].Value); {
	case s.desc:
		s.values.hi = s.behind(group)
	default:
		s.values.lo = group
	}
}

// groupOf returns a value or, of a long text, the part by which it is in its place.
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
func (s *series) behind(group string) string {
	if s.long(group) {
		return afterPrefix(group)
	}
	return group + "\x00"
}

// skip leaves out the values of the group, and those before it.
func (s *series) skip() {
	switch {
	case s.desc:
		s.values.hi = s.group
		s.values.none = s.group == ""
	default:
		s.values.lo = s.behind(s.group)
		s.values.none = s.values.lo == ""
	}
}

// rankOf returns what the ranks of a group begin with.
func (s *series) rankOf(group string) []byte {
	rank := slices.Clone(s.begin)
	switch {
	case s.attr.kind == entity.Numeric:
		return appendNumberRank(rank, packed.Ordered(group), s.desc)
	case s.attr.address:
		return appendTextRank(rank, []byte(entity.Address([]byte(group)).String()), s.desc)
	}
	rank = appendTextRank(rank, []byte(group), s.desc)
	if s.long(group) {
		rank = rank[:len(rank)-len(textEnd)]
	}
	return rank
}

// postings calls f with the postings of the values that are still to come, in their order.
func (s *series) postings(ctx context.Context, f func(*lsm.Posting) error) error {
	if s.values.none {
		return nil
	}
	spans, v := s.attr.spans(s.values, s.v.past), s.v
	walk := func(span lsm.Span, f func(*lsm.Posting) error) error {
		return v.l.postings.Walk(ctx, v.q, &v.p.tree, span, s.desc, f)
	}
	if len(spans) == 1 {
		return walk(spans[0], f)
	}
	seq := func(span lsm.Span) iter.Seq2[*lsm.Posting, error] {
		return func(yield func(*lsm.Posting, error) bool) {
			err := walk(span, func(p *lsm.Posting) error { return stoppedIf(!yield(p, nil)) })
			if err != nil && !errors.Is(err, errStopped) {
				yield(nil, err)
			}
		}
	}
	return merge(seq(spans[0]), seq(spans[1]), s.desc, f)
}

// merge calls f with the postings of two sequences in the order of their values.
func merge(a, b iter.Seq2[*lsm.Posting, error], desc bool, f func(*lsm.Posting) error) error {
	nextA, stopA := iter.Pull2(a)
	defer stopA()
	nextB, stopB := iter.Pull2(b)
	defer stopB()
	p, errA, okA := nextA()
	q, errB, okB := nextB()
	for okA || okB {
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		first := okA
		if okA && okB {
			order := cmp.Or(bytes.Compare(p.Value, q.Value), cmp.Compare(p.Chunk, q.Chunk))
			first = order <= 0 != desc
		}
		if first {
			if err := f(p); err != nil {
				return err
			}
			p, errA, okA = nextA()
			continue
		}
		if err := f(q); err != nil {
			return err
		}
		q, errB, okB = nextB()
	}
	return nil
}

// posting returns what is done with each posting.
func (s *series) posting(ctx context.Context) func(*lsm.Posting) error {
	return func(p *lsm.Posting) (err error) {
		if group := s.groupOf(string(p.Value)); group != s.group || s.ids == nil {
			if err := s.close(ctx); err != nil {
				return err
			}
			s.group, s.ids = group, make([]int64, 0, 4)
		}
		old := len(s.ids)
		if s.ids, err = p.AppendIDs(s.ids); err != nil {
			return err
		}
		kept := s.ids[:old]
		for _, id := range s.ids[old:] {
			if s.c.ids.Has(id) != s.c.negated {
				kept = append(kept, id)
			}
		}
		if s.ids = kept; len(s.ids) <= together || s.long(s.group) {
			return nil
		}
		return s.deepen(ctx)
	}
}

// deepen hands out a large group in the order of the next attributes.
func (s *series) deepen(ctx context.Context) error {
	s.ids = nil
	if err := s.flush(ctx); err != nil {
		return err
	}
	has := s.v.havingTerms([]lsm.Term{{Space: s.attr.attr, Value: s.group}}, true)
	f := and{[]filter{s.f, has}}
	if err := s.column(ctx, f, s.rankOf(s.group), s.n+1); err != nil {
		return err
	}
	s.skip()
	return errSkip
}

// close puts the group into the batch.
func (s *series) close(ctx context.Context) error {
	if len(s.ids) == 0 {
		return nil
	}
	rank := s.rankOf(s.group)
	if len(s.batch) == 0 {
		s.from = rank
	}
	s.to = rank
	for _, id := range s.ids {
		if !s.v.overlay().touches(id) {
			s.batch = append(s.batch, id)
		}
	}
	s.ids = nil
	if len(s.batch) < s.size {
		return nil
	}
	return s.flush(ctx)
}

// flush hands out the matches of the batch.
func (s *series) flush(ctx context.Context) error {
	found, err := s.v.versionsOf(ctx, s.batch)
	if err != nil {
		return err
	}
	var list []ranked
	for _, r := range found {
		m, ok, err := s.rank(r, s.begin)
		if err != nil {
			return err
		}
		// In the past it may have had another value, which is not the batch's.
		if ok && bytes.Compare(m.rank, s.from) >= 0 && (bytes.Compare(m.rank, s.to) <= 0 || bytes.HasPrefix(m.rank, s.to)) {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, byRank)
	s.spent += len(s.batch)
	s.batch, s.size = s.batch[:0], min(2*s.size, together)
	if err := s.emitAll(ctx, list); err != nil {
		return err
	}
	return s.weigh(ctx)
}

// find looks up what takes no longer than what was read so far, as walk does.
func (s *series) find(ctx context.Context) (err error) {
	s.review = max(growth*s.spent, 2*few)
	if err = s.f.find(ctx, int64(s.spent/pageVersions)); err == nil {
		s.c, err = s.f.within(ctx, s.v.all())
	}
	return err
}

// weigh finds out more of the candidates, and collects those that are left when these are few.
func (s *series) weigh(ctx context.Context) error {
	if s.spent < s.review {
		return nil
	}
	if err := s.find(ctx); err != nil || s.c.negated || s.c.ids.Len() > max(s.spent, enough) {
		return err
	}
	if err := s.collect(ctx, s.f, s.begin); err != nil {
		return err
	}
	return errCollected
}
