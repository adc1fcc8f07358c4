package storetest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/storetest/model"
)

// A failure is made smaller for less than rapid's 30 s, unless -rapid.shrinktime says otherwise.
var _ = flag.Set("rapid.shrinktime", "5s")

// How many histories RunDifferential tries, where neither the harness nor -rapid.checks says
// it: on a layout that repeats another one, on one that no other suite has, and on one with
// runs, which are in another state with each limit on what is put off.
const (
	repeatedChecks = 30
	labChecks      = 8
	runsChecks     = 200
)

// RunDifferential does random things to a store and to the Model: blocks, loads, rewinds,
// prunes, merges, checkpoints, and opening with other parameters that must not matter. It asks
// both random questions and at the end imports the history into another layout. They must
// agree on every answer, every error and the digest. Since the Model judges, engines that
// cannot be in one program are compared as well. How much is tried follows the flags
// -rapid.checks and -rapid.steps and is less with -short.
func RunDifferential(t *testing.T, h Harness) {
	layouts := h.layouts()
	if h.Layouts == nil && h.Checks == 0 { // else those of the lab too are too slow
		layouts = schemas.EntityLayouts()
	}
	for _, layout := range layouts {
		t.Run("layout="+layout, func(t *testing.T) {
			for name, run := range foundCases {
				t.Run(name, func(t *testing.T) { run(t, h, layout) })
			}
			// In a test of its own: rapid panics in one that has failed.
			t.Run("random", func(t *testing.T) {
				limitChecks(t, h.checks(layout))
				rapid.Check(t, func(rt *rapid.T) { differential(t, rt, h, layout) })
			})
		})
	}
}

// checks returns how many histories to try on a layout, 0 for as many as -rapid.checks says.
func (h Harness) checks(layout string) int {
	switch {
	case h.Checks > 0:
		return h.Checks
	case !slices.Contains(h.layouts(), layout):
		return labChecks
	case h.repeats(layout):
		return repeatedChecks
	case schemas.HasRuns(layout):
		return runsChecks
	}
	return 0
}

// limitChecks sets -rapid.checks for a test, unless the flag was given.
func limitChecks(t *testing.T, checks int) {
	f := flag.Lookup("rapid.checks")
	if checks == 0 || f == nil || f.Value.String() != f.DefValue {
		return
	}
	require.NoError(t, f.Value.Set(strconv.Itoa(checks)))
	t.Cleanup(func() { require.NoError(t, f.Value.Set(f.DefValue)) })
}

// machine is a store beside the model of it.
type machine struct {
	url    string // with what is chosen once
	layout string
	driver driver.Driver
	db     *store.DB
	ents   *store.Entities
	model  *model.Model
	gen    *generator
	pruned bool
	fed    []store.Block // that the store holds, as they were given to it
}

func differential(t *testing.T, rt *rapid.T, h Harness, layout string) {
	gen := &generator{rt: rt}
	m := newMachine(t, gen, h, layout, &model.Model{ExtendAdds: gen.chance("extend adds", 3)})
	m.open(rt)
	defer func() { require.NoError(rt, m.db.Close()) }()
	gen.nul, gen.nulPattern = 12, true
	if !m.driver.Capabilities.TextNUL {
		gen.nul, gen.nulPattern, m.model.NoNUL = 200, false, true
	}
	rt.Repeat(map[string]func(*rapid.T){
		"":           m.check,
		"apply":      m.apply,
		"apply more": m.apply,
		"apply on":   m.apply,
		"load":       m.load,
		"rewind":     m.rewind,
		"prune":      m.prune,
		"reopen":     m.reopen,
		"get":        m.get,
		"query":      m.query,
		"query more": m.query,
		"page":       m.page,
		"settle":     m.settle,
	})
	if gen.chance("export", 4) {
		m.export(t, rt, h)
	}
}

// newMachine returns a machine whose store is to be opened.
func newMachine(t *testing.T, gen *generator, h Harness, layout string, of *model.Model) *machine {
	m := &machine{url: h.quickURL(t), layout: layout, model: of, gen: gen}
	m.driver = linkedDriver(t, m.url)
	if m.has("page_size") {
		m.url = withParams(t, m.url, "page_size", one(gen, "page size", []string{"4096", "512", "1024", "65536"}))
	}
	return m
}

// has tells whether URLs of the engine may have a parameter.
func (m *machine) has(param string) bool {
	_, is := m.driver.Params[param]
	return is
}

func (m *machine) open(t *rapid.T) {
	params := m.params()
	t.Logf("open %s with %q", m.layout, params)
	m.db = mustOpen(t, withParams(t, m.url, params...), nil)
	m.ents = entitiesOf(t, m.db, store.EntityOptions{Layout: m.layout, ExtendAdds: m.model.ExtendAdds})
	m.model.HeadOnly = !m.ents.Temporal()
}

// params draws what may be another one each time the store is opened.
func (m *machine) params() (pairs []string) {
	memory := []string{"256MiB", "64MiB"}
	if m.has("page_size") {
		memory = []string{"256MiB", "64KiB", "1MiB"} // of page caches, which need hold nothing
		pairs = append(pairs, "mmap", one(m.gen, "mmap", []string{"0", "65536", "100000000"}))
	}
	pairs = append(pairs, "memory", one(m.gen, "memory", memory))
	if m.driver.Capabilities.WALCheckpoint {
		policies := []driver.CheckpointPolicy{driver.Background, driver.Inline, driver.Manual}
		pairs = append(pairs, "checkpoint", string(one(m.gen, "checkpoint", policies)), "checkpoint_frames", one(m.gen, "frames", []string{"1000", "1", "20"}))
	}
	if schemas.HasRuns(m.layout) { // with 1 and 3 merges are met in every state, with the last in none
		pairs = append(pairs, "backlog", one(m.gen, "backlog", []string{"3", "1", "3", "1", "20", "16384"}))
	}
	return pairs
}

func (m *machine) reopen(t *rapid.T) {
	require.NoError(t, m.db.Close())
	m.open(t)
	m.checkState(t)
}

// check compares head and digest, which cover the whole history.
func (m *machine) check(t *rapid.T) {
	head := headOf(t, m.ents)
	require.Equal(t, m.model.Head(), head)
}

// checkState compares everything that is visible at the head.
func (m *machine) checkState(t *rapid.T) {
	m.check(t)
	m.compareAt(t, store.Head, func(s *store.Snapshot, want *model.Snapshot) {
		found := collected(t, s.Query(context.Background(), nil, nil))
		all, err := want.Query(nil, nil, 0, nil)
		require.NoError(t, err)
		requireEntities(t, all, found)
	})
}

// compareAt opens both at a block and calls f when that succeeds.
func (m *machine) compareAt(t *rapid.T, block uint64, f func(s *store.Snapshot, want *model.Snapshot)) {
	want, wantErr := m.model.At(block)
	s, err := m.ents.At(context.Background(), block)
	requireSameError(t, wantErr, err)
	if err != nil {
		return
	}
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, want.Block(), s.Block())
	f(s, want)
}

func (m *machine) apply(t *rapid.T) {
	b := m.gen.block(m.model)
	t.Logf("apply %+v", b)
	wantErr := m.model.Apply(b)
	_, err := m.ents.Apply(context.Background(), b)
	requireSameError(t, wantErr, err)
	if err != nil {
		m.checkState(t)
		return
	}
	m.fed = append(m.fed, b)
}

// load applies several blocks in one go, by chance behind some that the store
// holds, which are skipped. What of them is kept when one is refused depends on
// where transactions end, which the store tells.
func (m *machine) load(t *rapid.T) {
	ahead := m.model.Clone()
	blocks := slices.Clone(m.fed[m.gen.pick("repeated from", len(m.fed)+1):])
	held := len(blocks)
	var valid []store.Block // that the store may keep
	var wantErr error
	for range 1 + m.gen.pick("blocks", 4) {
		b := m.gen.block(ahead)
		if head := m.model.Head(); !head.Empty && b.Number <= head.Block && len(blocks) == held {
			continue // another block of this number: another history
		}
		blocks = append(blocks, b)
		if wantErr == nil {
			if wantErr = ahead.Apply(b); wantErr == nil {
				valid = append(valid, b)
			}
		}
	}
	opts := store.LoadOptions{Changes: 1 + m.gen.pick("changes", 8)}
	t.Logf("load %+v", blocks)
	loaded, err := m.ents.Load(context.Background(), stream(blocks, nil), opts)
	requireSameError(t, wantErr, err)
	if err == nil {
		require.Equal(t, ahead.Head(), loaded.Head)
	}
	before := m.model.Head()
	require.True(t, !loaded.Head.Empty || before.Empty, "a load never takes back blocks")
	require.GreaterOrEqual(t, loaded.Head.Block, before.Block, "a load never takes back blocks")
	for _, b := range valid {
		if !loaded.Head.Empty && b.Number <= loaded.Head.Block {
			require.NoError(t, m.model.Apply(b))
		}
	}
	for _, b := range blocks[held:] {
		if n := len(m.fed); n == 0 || b.Number > m.fed[n-1].Number {
			m.fed = append(m.fed, b)
		}
	}
	m.forget()
	m.checkState(t)
}

func (m *machine) rewind(t *rapid.T) {
	to := m.gen.at(m.model)
	t.Logf("rewind to %d", to)
	wantErr := m.model.Rewind(to)
	requireSameError(t, wantErr, m.ents.Rewind(context.Background(), to))
	m.forget()
	m.checkState(t)
}

// forget drops blocks that the store does not hold, or not any more.
func (m *machine) forget() {
	head := m.model.Head()
	i := slices.IndexFunc(m.fed, func(b store.Block) bool { return head.Empty || b.Number > head.Block })
	if i >= 0 {
		m.fed = m.fed[:i]
	}
}

func (m *machine) prune(t *rapid.T) {
	before := m.gen.at(m.model)
	t.Logf("prune before %d", before)
	wantErr := m.model.Prune(before)
	requireSameError(t, wantErr, m.ents.Prune(context.Background(), before))
	m.pruned = m.pruned || wantErr == nil && before > 0
	m.checkState(t)
}

// settle does what the layout or the engine puts off, by chance only a part of it, and lets
// the store check itself.
func (m *machine) settle(t *rapid.T) {
	if m.gen.chance("all of it", 2) {
		require.NoError(t, m.ents.Settle(context.Background()))
	}
	if m.driver.Capabilities.WALCheckpoint && m.gen.chance("checkpoint", 2) {
		_, err := m.db.Checkpoint(context.Background(), m.gen.chance("truncate", 2))
		require.NoError(t, err)
	}
	_, err := m.ents.Verify(context.Background())
	require.NoError(t, err)
	m.checkState(t)
}

func (m *machine) get(t *rapid.T) {
	m.compareAt(t, m.gen.at(m.model), func(s *store.Snapshot, want *model.Snapshot) {
		for range 3 {
			key := one(m.gen, "key", someKeys[:])
			wantEntity, wantErr := want.Get(key)
			found, err := s.Get(context.Background(), key)
			requireSameError(t, wantErr, err)
			if err == nil {
				requireEntities(t, []*store.Entity{wantEntity}, []*store.Entity{found})
			}
		}
	})
}

func (m *machine) query(t *rapid.T) {
	m.compareAt(t, m.gen.at(m.model), func(s *store.Snapshot, want *model.Snapshot) {
		for range 2 {
			expr := m.gen.expr(3, m.model.Head().Block)
			t.Logf("query at %d: %s", s.Block(), expr)
			opts := store.QueryOptions{Order: m.gen.order(), Limit: m.gen.pick("limit", 4)}
			wantFound, wantErr := want.Query(expr, opts.Order, opts.Limit, nil)
			found, err := collect(s.Query(context.Background(), expr, &opts))
			requireSameError(t, wantErr, err)
			requireEntities(t, wantFound, found)

			wantCount, wantErr := want.Count(expr)
			count, err := s.Count(context.Background(), expr)
			requireSameError(t, wantErr, err)
			require.Equal(t, wantCount, count)
		}
	})
}

// page reads a result page by page, each page in a snapshot of its own, while
// the head moves. The pages together are the result at the first page's block.
func (m *machine) page(t *rapid.T) {
	at := m.gen.at(m.model)
	want, err := m.model.At(at)
	if err != nil {
		t.Skip("the block cannot be read")
	}
	expr := m.gen.expr(2, m.model.Head().Block)
	opts := store.QueryOptions{Order: m.gen.order(), Limit: 1 + m.gen.pick("limit", 3)}
	wantAll, err := want.Query(expr, opts.Order, 0, nil)
	require.NoError(t, err)
	t.Logf("pages at %d of %d by %+v: %s", want.Block(), opts.Limit, opts.Order, expr)

	var all []*store.Entity
	for {
		s := snapshotAt(t, m.ents, at)
		found := collected(t, s.Query(context.Background(), expr, &opts))
		all = append(all, found...)
		if len(found) > 0 {
			opts.After, err = s.Cursor(found[len(found)-1], &opts)
			require.NoError(t, err)
		}
		require.NoError(t, s.Close())
		if len(found) < opts.Limit {
			break
		}
		require.LessOrEqual(t, len(all), len(wantAll), "pages repeat")
		if !m.model.HeadOnly {
			m.apply(t)
			at = store.Head // the cursor, not the snapshot, says which block
		}
	}
	requireEntities(t, wantAll, all)
}

// export writes the history into a store of any layout, which then has the same digest and
// the same answers, and goes on.
func (m *machine) export(t *testing.T, rt *rapid.T, h Harness) {
	if m.model.HeadOnly || m.pruned {
		return
	}
	other := newMachine(t, m.gen, h, one(m.gen, "layout", schemas.EntityLayouts()), m.model.Clone())
	other.open(rt)
	defer func() { require.NoError(rt, other.db.Close()) }()
	importInto(rt, other.ents, m.ents.History(context.Background()), store.LoadOptions{Changes: 4})
	other.checkState(rt)
	for range 3 {
		other.get(rt)
		other.query(rt)
		other.apply(rt)
	}
	other.checkState(rt)
}

func requireEntities(t require.TestingT, want, got []*store.Entity) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	if !slices.EqualFunc(want, got, sameEntity) {
		require.Empty(t, cmp.Diff(want, got, cmpopts.EquateEmpty()), "-want +got")
	}
}

// sameEntity tells whether two versions are equal. Nil and empty are the same.
// It is go-cmp's verdict, without the time that takes when they are.
func sameEntity(a, b *store.Entity) bool {
	return a.Key == b.Key && a.Creator == b.Creator && a.Owner == b.Owner &&
		a.ContentType == b.ContentType && bytes.Equal(a.Content, b.Content) &&
		maps.Equal(a.StringAttributes, b.StringAttributes) && maps.Equal(a.NumericAttributes, b.NumericAttributes) &&
		a.Sequence == b.Sequence && a.LastModifiedAtBlock == b.LastModifiedAtBlock && a.Expiration == b.Expiration
}

// sentinels are the errors that callers of Entities branch on, by name.
var sentinels = []struct {
	name string
	err  error
}{
	{"not found", store.ErrNotFound},
	{"exists", store.ErrExists},
	{"invalid", store.ErrInvalid},
	{"block order", store.ErrBlockOrder},
	{"block range", store.ErrBlockRange},
	{"unsupported", store.ErrUnsupported},
	{"history", store.ErrHistory},
	{"layout", store.ErrLayout},
	{"conflict", store.ErrConflict},
	{"corrupt", store.ErrCorrupt},
	{"closed", store.ErrClosed},
	{"read-only", store.ErrReadOnly},
}

// sentinelName returns the sentinel that an error wraps, "" for nil and the
// error's text when it wraps none.
func sentinelName(err error) string {
	if err == nil {
		return ""
	}
	i := slices.IndexFunc(sentinels, func(s struct {
		name string
		err  error
	}) bool {
		return errors.Is(err, s.err)
	})
	if i < 0 {
		return err.Error()
	}
	return sentinels[i].name
}

// requireSameError compares errors by sentinel and by the operation at fault.
func requireSameError(t require.TestingT, want, got error) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	require.Equal(t, sentinelName(want), sentinelName(got), "want error: %v, got: %v", want, got)
	var wantOp, gotOp *entity.OpError
	require.Equal(t, errors.As(want, &wantOp), errors.As(got, &gotOp), "want error: %v, got: %v", want, got)
	if wantOp != nil {
		require.Empty(t, cmp.Diff(wantOp, gotOp, cmpopts.IgnoreFields(entity.OpError{}, "Err")))
	}
}
