package storetest

import (
	"context"
	"crypto/sha256"
	_ "embed" // for the golden transcript
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// golden is what the Model answers to the script, once as a store with history
// and once as one without. It is rewritten by
//
//	go test ./store/storetest -run Transcript -update
//
//go:embed testdata/transcript.txt
var golden string

// RunTranscript plays a fixed script to a store of each layout and compares all
// answers with a transcript. Engines that cannot be in one program (SQLite and
// libSQL) are thereby compared with each other. What depends on a capability is
// not in the script.
func RunTranscript(t *testing.T, h Harness) {
	for _, layout := range h.layouts() {
		t.Run("layout="+layout, func(t *testing.T) {
			db := h.open(t, h.quickURL(t), nil)
			ents := entitiesOf(t, db, store.EntityOptions{Layout: layout})
			got := playScript(storeSubject{ents}, !ents.Temporal())
			requireTranscript(t, goldenSection(!ents.Temporal()), got)
		})
	}
}

// sectionTitle opens the part of the golden transcript for stores of one sort.
func sectionTitle(headOnly bool) string {
	if headOnly {
		return "# Layouts that keep only the head\n"
	}
	return "# Layouts with history\n"
}

func goldenSection(headOnly bool) string {
	_, section, _ := strings.Cut(golden, sectionTitle(headOnly))
	section, _, _ = strings.Cut(section, "\n# ")
	return section
}

// requireTranscript shows the first difference with what led to it.
func requireTranscript(t testing.TB, want, got string) {
	t.Helper()
	w, g := strings.Split(strings.TrimRight(want, "\n"), "\n"), strings.Split(strings.TrimRight(got, "\n"), "\n")
	for i := range max(len(w), len(g)) {
		if i < len(w) && i < len(g) && w[i] == g[i] {
			continue
		}
		require.Equal(t, strings.Join(w[max(0, min(i-6, len(w))):min(i+3, len(w))], "\n"),
			strings.Join(g[max(0, min(i-6, len(g))):min(i+3, len(g))], "\n"), "the transcript differs from line %d of its section on", i+1)
	}
}

// subject is what the script is played to: a store or the Model.
type subject interface {
	apply(b store.Block) error
	rewind(to uint64) error
	prune(before uint64) error
	head() (store.BlockHead, error)
	get(at uint64, key store.Key) (*store.Entity, error)
	count(at uint64, expr query.Expr) (uint64, error)
	// pages reads a whole result in pages of at most limit entities.
	pages(at uint64, expr query.Expr, order []store.Order, limit int) ([][]*store.Entity, error)
}

const scriptBlocks = 60

// playScript returns the answers to the script, a line or a few for each step.
func playScript(s subject, headOnly bool) string {
	// A hand-made draw: those of math/rand may change with the Go version, a
	// PCG's raw numbers do not.
	source := rand.NewPCG(20240101, 7)
	p := script{subject: s, model: &model.Model{HeadOnly: headOnly}}
	p.gen = &generator{pick: func(_ string, n int) int { return int(source.Uint64() % uint64(n)) }}
	for i := range scriptBlocks {
		p.block()
		for range 4 {
			p.query()
		}
		p.get()
		if i%8 == 7 {
			p.rewind()
		}
		if i%14 == 13 {
			p.prune()
		}
	}
	return p.out.String()
}

// script plays steps to a subject and, to choose sensible ones, to a model.
type script struct {
	subject subject
	model   *model.Model
	gen     *generator
	out     strings.Builder
}

func (p *script) write(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

// outcome writes how a step ended and where the store is then.
func (p *script) outcome(step string, err error) {
	head, headErr := p.subject.head()
	if headErr != nil {
		p.write("%s: head: %v", step, headErr)
		return
	}
	result := "ok"
	if err != nil {
		result = sentinelName(err)
	}
	p.write("%s: %s; head %d %s", step, result, head.Block, head.Digest)
}

func (p *script) block() {
	b := p.gen.block(p.model)
	_ = p.model.Apply(b) // the subject's error is what is compared
	kinds := make([]string, len(b.Ops))
	for i, op := range b.Ops {
		kinds[i] = fmt.Sprintf("%s %x", op.Kind, op.Key[:1])
	}
	p.outcome(fmt.Sprintf("apply %d [%s]", b.Number, strings.Join(kinds, ", ")), p.subject.apply(b))
}

func (p *script) rewind() {
	to := p.gen.at(p.model)
	_ = p.model.Rewind(to)
	p.outcome(fmt.Sprint("rewind ", blockName(to)), p.subject.rewind(to))
}

func (p *script) prune() {
	before := p.gen.at(p.model)
	if before == store.Head || before > p.model.Horizon()+20 {
		before = p.model.Horizon() + 5 // leave some history to ask about
	}
	_ = p.model.Prune(before)
	p.outcome(fmt.Sprint("prune ", before), p.subject.prune(before))
}

func (p *script) get() {
	at, key := p.gen.at(p.model), one(p.gen, "key", someKeys[:])
	e, err := p.subject.get(at, key)
	if err != nil {
		p.write("get %x at %s: %s", key[:1], blockName(at), sentinelName(err))
		return
	}
	p.write("get %x at %s: %s", key[:1], blockName(at), describe(e))
}

func (p *script) query() {
	at, order := p.gen.at(p.model), p.gen.order()
	expr, limit := p.gen.expr(1+p.gen.pick("height", 3), p.model.Head().Block), 1+p.gen.pick("limit", 4)
	var by strings.Builder
	for _, o := range order {
		fmt.Fprintf(&by, ", by %q kind %d descending %t", o.Name, o.Kind, o.Desc)
	}
	p.write("query at %s%s, %d a page: %s", blockName(at), by.String(), limit, expr)
	n, err := p.subject.count(at, expr)
	if err != nil {
		p.write("  count: %s", sentinelName(err))
	} else {
		p.write("  count: %d", n)
	}
	pages, err := p.subject.pages(at, expr, order, limit)
	for _, page := range pages {
		var names []string
		for _, e := range page {
			names = append(names, fmt.Sprintf("%x@%d", e.Key[:1], e.LastModifiedAtBlock))
		}
		p.write("  page: %s", strings.Join(names, " "))
	}
	if err != nil {
		p.write("  error: %s", sentinelName(err))
	}
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

// storeSubject is a store as a subject.
type storeSubject struct{ ents *store.Entities }

func (s storeSubject) apply(b store.Block) error {
	_, err := s.ents.Apply(context.Background(), b)
	return err
}

func (s storeSubject) rewind(to uint64) error    { return s.ents.Rewind(context.Background(), to) }
func (s storeSubject) prune(before uint64) error { return s.ents.Prune(context.Background(), before) }

func (s storeSubject) head() (store.BlockHead, error) { return s.ents.Head(context.Background()) }

func (s storeSubject) get(at uint64, key store.Key) (*store.Entity, error) {
	snap, err := s.ents.At(context.Background(), at)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	return snap.Get(context.Background(), key)
}

func (s storeSubject) count(at uint64, expr query.Expr) (uint64, error) {
	snap, err := s.ents.At(context.Background(), at)
	if err != nil {
		return 0, err
	}
	defer snap.Close()
	return snap.Count(context.Background(), expr)
}

func (s storeSubject) pages(at uint64, expr query.Expr, order []store.Order, limit int) (pages [][]*store.Entity, err error) {
	snap, err := s.ents.At(context.Background(), at)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	opts := store.QueryOptions{Order: order, Limit: limit}
	for {
		page, err := collect(snap.Query(context.Background(), expr, &opts))
		if err != nil || len(page) == 0 {
			return pages, err
		}
		pages = append(pages, page)
		if opts.After, err = snap.Cursor(page[len(page)-1], &opts); err != nil {
			return pages, err
		}
	}
}

// modelSubject is a Model as a subject.
type modelSubject struct{ model *model.Model }

func (s modelSubject) apply(b store.Block) error { return s.model.Apply(b) }
func (s modelSubject) rewind(to uint64) error    { return s.model.Rewind(to) }
func (s modelSubject) prune(before uint64) error { return s.model.Prune(before) }

func (s modelSubject) head() (store.BlockHead, error) { return s.model.Head(), nil }

func (s modelSubject) get(at uint64, key store.Key) (*store.Entity, error) {
	snap, err := s.model.At(at)
	if err != nil {
		return nil, err
	}
	return snap.Get(key)
}

func (s modelSubject) count(at uint64, expr query.Expr) (uint64, error) {
	snap, err := s.model.At(at)
	if err != nil {
		return 0, err
	}
	return snap.Count(expr)
}

func (s modelSubject) pages(at uint64, expr query.Expr, order []store.Order, limit int) (pages [][]*store.Entity, err error) {
	snap, err := s.model.At(at)
	if err != nil {
		return nil, err
	}
	var last *store.Entity
	for {
		page, err := snap.Query(expr, order, limit, last)
		if err != nil || len(page) == 0 {
			return pages, err
		}
		pages = append(pages, page)
		last = page[len(page)-1]
	}
}
