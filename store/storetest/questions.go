package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

var (
	questions    = flag.Int("varve.questions", 0, "how many random questions RunQuestions asks at each size; 0: as many as are quick")
	questionSeed = flag.Uint64("varve.seed", 1, "what the data and questions of RunQuestions are drawn from")
)

// questionSizes are how many entities the stores of RunQuestions have, about, and how
// many questions are asked unless the flag says: first where the engine is quick, then
// where it is slow. Where it would be none the stores are not made.
var questionSizes = []struct{ entities, quick, slow int }{{50, 400, 60}, {2000, 300, 60}, {20_000, 60, 0}}

// compactParams are the parameters of the further stores of the layout compact, beside
// one with the defaults of which everything is merged: those that make it work in
// portions so small that a question meets many, and those that leave a part in the log.
var compactParams = [][]string{{"backlog", "40"}, {"backlog", "100000"}}

// RunQuestions asks the Model and stores of three sizes random questions: expressions of
// many terms over values that few have and that many have, in random orders, with limits,
// read in pages that begin anywhere, at the head and at past blocks. All must give the
// same answers. A failing question is made smaller and printed with its seed. After a
// change to how questions are answered many are asked, which takes long:
//
//	go test ./store/sqlite -run TestConformance/questions -varve.questions=20000 -timeout=0
func RunQuestions(t *testing.T, h Harness) {
	for _, size := range questionSizes {
		n := size.quick
		if h.Checks > 0 || testing.Short() {
			n = size.slow
		}
		if *questions > 0 {
			n = *questions
		}
		if n > 0 {
			t.Run(fmt.Sprintf("entities=%d", size.entities), func(t *testing.T) { runQuestions(t, h, size.entities, n) })
		}
	}
}

func runQuestions(t *testing.T, h Harness, entities, n int) {
	w := newWorld(t, entities, *questionSeed)
	var list []*asked
	for _, layout := range questionLayouts(h.layouts(), entities) {
		list = append(list, w.open(t, h, layout))
		if layout == "compact" {
			for _, params := range compactParams {
				list = append(list, w.open(t, h, layout, params...))
			}
		}
	}
	found := 0
	for i := range n {
		q := w.question(rand.New(rand.NewPCG(*questionSeed, uint64(i))))
		matches := w.matches(t, q)
		found += min(len(matches), 1)
		for _, s := range list {
			if err := s.check(t.Context(), q, matches); err != nil {
				q, err = s.smallest(t, w, q, err)
				t.Fatalf("-varve.seed=%d, question %d of %d entities, on %s:\n%s\n%v", *questionSeed, i, entities, s, q, err)
			}
		}
	}
	require.Greater(t, found, n/4, "many questions find something")
	for _, s := range list {
		require.LessOrEqual(t, s.lacked, n/10, "%s answers most questions", s)
	}
}

// questionLayouts returns the layouts for stores of a size: all of them for the smallest,
// and of those that differ in their indexes alone the first for larger ones.
func questionLayouts(layouts []string, entities int) (list []string) {
	if largest := questionSizes[len(questionSizes)-1]; entities == largest.entities && *questions == 0 {
		// So large for what is merged and read in portions; the SQL of the others is the same
		// for any size.
		layouts = slices.DeleteFunc(slices.Clone(layouts), func(l string) bool { return !schemas.HasRuns(l) })
	}
	have := map[string]bool{}
	for _, layout := range layouts {
		if entities == questionSizes[0].entities || !have[tables(layout)] {
			list, have[tables(layout)] = append(list, layout), true
		}
	}
	return list
}

// question is what is asked and how the answer is read.
type question struct {
	at    uint64
	expr  query.Expr
	order []store.Order
	limit int
	after *store.Entity // from where on; nil for the beginning
	pages int           // how many are read, of as many as the limit says
	count bool          // as well
}

func (q question) String() string {
	text := fmt.Sprintf("at %s: %s\norder %v, %d pages of %d", blockName(q.at), q.expr, q.order, q.pages, q.limit)
	if q.after != nil {
		text += fmt.Sprintf(", after %s", q.after.Key)
	}
	return text
}

// asked is a store that questions are put to, through views that stay open.
type asked struct {
	layout string
	params []string
	caps   driver.Capabilities
	ents   *store.Entities
	views  map[uint64]*store.Snapshot
	lacked int // questions for which there was not enough memory
}

func (s *asked) String() string {
	return strings.Join(append([]string{"layout " + s.layout}, s.params...), " ")
}

// open makes a store of a world. One with parameters is left as loading leaves it, in
// others nothing is put off.
func (w *world) open(t *testing.T, h Harness, layout string, params ...string) *asked {
	t.Helper()
	all := append([]string{"readers", fmt.Sprint(len(w.states)), "memory", "256MiB"}, params...)
	db := h.open(t, withParams(t, h.quickURL(t), all...), nil)
	ents := entitiesOf(t, db, store.EntityOptions{Layout: layout})
	loaded := len(w.blocks)
	if len(params) > 0 {
		loaded = loaded * 3 / 4
	}
	loadInto(t, ents, stream(w.blocks[:loaded], nil), store.LoadOptions{})
	if len(params) == 0 {
		require.NoError(t, ents.Settle(t.Context()))
	}
	for _, b := range w.blocks[loaded:] {
		_, err := ents.Apply(t.Context(), b)
		require.NoError(t, err)
	}
	s := &asked{layout: layout, params: params, caps: db.Engine().Capabilities(), ents: ents, views: map[uint64]*store.Snapshot{}}
	for at := range w.states {
		if at != store.Head && !ents.Temporal() {
			continue
		}
		s.views[at] = snapshotAt(t, ents, at)
		t.Cleanup(func() { require.NoError(t, s.views[at].Close()) })
	}
	return s
}

// check asks a question and returns how the answer differs from the matches. An engine
// may lack the memory for some questions, which ends its view.
func (s *asked) check(ctx context.Context, q question, matches []*store.Entity) error {
	view := s.views[q.at]
	if view == nil || s.caps.MaxConditions > 0 && conditions(q.expr) > s.caps.MaxConditions {
		return nil
	}
	err := s.answer(ctx, view, q, matches)
	if !errors.Is(err, driver.ErrMemory) {
		return err
	}
	s.lacked++
	for at, view := range s.views {
		if err := view.Close(); err != nil {
			return err
		}
		if s.views[at], err = s.ents.At(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// matches returns the Model's answer to a question, all of it.
func (w *world) matches(t *testing.T, q question) []*store.Entity {
	t.Helper()
	list, err := w.states[q.at].Query(q.expr, q.order, 0, nil)
	require.NoError(t, err)
	return list
}

// errAnswer is wrapped by errors that tell of a wrong answer, not of none.
var errAnswer = errors.New("wrong answer")

func (s *asked) answer(ctx context.Context, view *store.Snapshot, q question, matches []*store.Entity) error {
	if q.count {
		n, err := view.Count(ctx, q.expr)
		if err != nil {
			return err
		}
		if n != uint64(len(matches)) {
			return fmt.Errorf("%w: count is %d, want %d", errAnswer, n, len(matches))
		}
	}
	opts := store.QueryOptions{Order: q.order, Limit: q.limit}
	var err error
	if q.after != nil {
		if opts.After, err = view.Cursor(q.after, &opts); err != nil {
			return err
		}
		rest := slices.IndexFunc(matches, func(e *store.Entity) bool { return model.Compare(q.order, e, q.after) > 0 })
		if rest < 0 {
			rest = len(matches)
		}
		matches = matches[rest:]
	}
	for page := range q.pages {
		want := matches
		if q.limit > 0 {
			want = want[:min(q.limit, len(want))]
		}
		found, err := collect(view.Query(ctx, q.expr, &opts))
		if err == nil && !slices.EqualFunc(want, found, sameEntity) {
			err = fmt.Errorf("%w: page %d: %s", errAnswer, page, difference(want, found))
		}
		if err != nil || q.limit == 0 || len(found) < q.limit {
			return err
		}
		matches = matches[len(found):]
		if opts.After, err = view.Cursor(found[len(found)-1], &opts); err != nil {
			return err
		}
		view = s.views[store.Head] // the cursor knows the block
	}
	return nil
}

// difference tells where two lists that are not the same begin to differ.
func difference(want, found []*store.Entity) string {
	i := 0
	for i < min(len(want), len(found)) && sameEntity(want[i], found[i]) {
		i++
	}
	at := func(list []*store.Entity) string {
		if i == len(list) {
			return "nothing"
		}
		return describe(list[i])
	}
	return fmt.Sprintf("%d entities, want %d; number %d is\n%s\nwant\n%s", len(found), len(want), i, at(found), at(want))
}

func blockName(block uint64) string {
	if block == store.Head {
		return "head"
	}
	return fmt.Sprint(block)
}

// describe writes everything of an entity on one line.
func describe(e *store.Entity) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s creator %s owner %s sequence %d modified %d expires %d type %q content %d bytes %.4x",
		e.Key, e.Creator, e.Owner, e.Sequence, e.LastModifiedAtBlock, e.Expiration, e.ContentType, len(e.Content), sha256.Sum256(e.Content))
	for _, name := range slices.Sorted(maps.Keys(e.StringAttributes)) {
		fmt.Fprintf(&b, " %q=%q", name, e.StringAttributes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(e.NumericAttributes)) {
		fmt.Fprintf(&b, " %q=%d", name, e.NumericAttributes[name])
	}
	return b.String()
}

// smallest makes a question with a wrong answer as small as it can.
func (s *asked) smallest(t *testing.T, w *world, q question, err error) (question, error) {
	t.Helper()
	for again := errors.Is(err, errAnswer); again; {
		again = false
		for _, less := range q.smaller() {
			if lessErr := s.check(t.Context(), less, w.matches(t, less)); errors.Is(lessErr, errAnswer) {
				q, err, again = less, lessErr, true
				break
			}
		}
	}
	return q, err
}

// smaller returns questions that ask a little less.
func (q question) smaller() (list []question) {
	add := func(change func(q *question)) {
		less := q
		change(&less)
		list = append(list, less)
	}
	for _, e := range smallerExprs(q.expr) {
		add(func(q *question) { q.expr = e })
	}
	for i := range q.order {
		add(func(q *question) { q.order = slices.Delete(slices.Clone(q.order), i, i+1) })
	}
	if q.after != nil {
		add(func(q *question) { q.after = nil })
	}
	if q.limit > 0 {
		add(func(q *question) { q.limit = 0 })
	}
	if q.limit > 1 {
		add(func(q *question) { q.limit /= 2 })
	}
	if q.at != store.Head {
		add(func(q *question) { q.at = store.Head })
	}
	if q.pages > 1 {
		add(func(q *question) { q.pages-- })
	}
	if q.count {
		add(func(q *question) { q.count = false })
	}
	return list
}

// smallerExprs returns expressions with a little less than one.
func smallerExprs(e query.Expr) (list []query.Expr) {
	switch e := e.(type) {
	case query.Not:
		list = append(list, e.Term)
		for _, less := range smallerExprs(e.Term) {
			list = append(list, query.Not{Term: less})
		}
	case query.And:
		return smallerTerms(e.Terms, func(terms []query.Expr) query.Expr { return query.And{Terms: terms} })
	case query.Or:
		return smallerTerms(e.Terms, func(terms []query.Expr) query.Expr { return query.Or{Terms: terms} })
	case query.In:
		if half := len(e.Values) / 2; half > 0 {
			first, second := e, e
			first.Values, second.Values = e.Values[:half], e.Values[half:]
			list = append(list, first, second)
		}
	}
	return list
}

func smallerTerms(terms []query.Expr, join func([]query.Expr) query.Expr) (list []query.Expr) {
	list = slices.Clone(terms)
	for i, term := range terms {
		if len(terms) > 2 {
			list = append(list, join(slices.Delete(slices.Clone(terms), i, i+1)))
		}
		for _, less := range smallerExprs(term) {
			changed := slices.Clone(terms)
			changed[i] = less
			list = append(list, join(changed))
		}
	}
	return list
}
