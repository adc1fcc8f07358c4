package storetest

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/storetest/model"
)

func (m *machine) get() {
	m.compareAt(m.At(m.model), func(s *store.Snapshot, want *model.Snapshot) {
		for range 3 {
			key := one(m.Drawer, m.Keys...)
			wantEntity, wantErr := want.Get(key)
			found, err := s.Get(m.ctx, key)
			requireSameError(m.t, wantErr, err)
			if err == nil {
				require.NoError(m.t, model.Same([]*entity.Entity{wantEntity}, []*entity.Entity{found}))
			}
		}
	})
}

func (m *machine) query() {
	m.compareAt(m.At(m.model), func(s *store.Snapshot, want *model.Snapshot) {
		for range 3 {
			m.ask(s, want)
		}
	})
}

// page reads a result page by page, each page in a snapshot of its own, while the head
// moves. The pages together are the result at the first page's block, unless that is rewound or
// pruned meanwhile.
func (m *machine) page() {
	at := m.At(m.model)
	want, err := m.model.At(at)
	if err != nil {
		return
	}
	q := m.Question(want)
	q.Limit = max(q.Limit, 1)
	m.note("pages at %d of %d by %+v: %s", want.Block(), q.Limit, q.Order, q.Expr)
	opts := store.QueryOptions{Order: q.Order, Limit: q.Limit}
	wantAll, err := want.Query(q.Expr, q.Order, 0, nil)
	require.NoError(m.t, err)
	was := m.model.BlockAt(want.Block()).Digest
	var all []*entity.Entity
	for n := opts.Limit; n == opts.Limit; {
		s := must(m.ents.At(m.ctx, at))(m.t)
		found, err := model.Collect(s.Query(m.ctx, q.Expr, &opts))
		next := opts
		if n = len(found); n > 0 && err == nil {
			next.After = must(s.Cursor(found[n-1], &opts))(m.t)
		}
		require.NoError(m.t, s.Close())
		rewound := want.Block() > m.model.Head().Number || m.model.BlockAt(want.Block()).Digest != was
		switch {
		case opts.After != "" && (rewound || want.Block() < m.model.Horizon()):
			require.ErrorIs(m.t, err, store.ErrBlockRange)
			require.True(m.t, errors.Is(err, store.ErrRewound) == rewound || want.Block() < m.model.Horizon(), "%v", err)
			return
		case m.cannot(err, q):
			return
		}
		require.NoError(m.t, err)
		all, opts = append(all, found...), next
		require.LessOrEqual(m.t, len(all), len(wantAll), "pages repeat")
		if !m.model.HeadOnly && m.Chance(2) {
			one(m.Drawer, m.apply, m.apply, m.apply, m.rewind, m.prune)()
			at = store.Head // the cursor, not the snapshot, says which block
		}
	}
	require.NoError(m.t, model.Same(wantAll, all))
}

// cannot tells whether a question is too much for the engine, which says so.
func (m *machine) cannot(err error, q model.Question) bool {
	if most := m.driver.Capabilities.MaxConditions; most > 0 && conditions(q.Expr) > most {
		require.ErrorIs(m.t, err, store.ErrUnsupported)
		return true
	}
	return errors.Is(err, driver.ErrMemory)
}

// ask asks a question in both.
func (m *machine) ask(s *store.Snapshot, want *model.Snapshot) {
	q := m.Question(want)
	m.note("ask at %d: %s\norder %v, limit %d, %d pages, after %t", s.Number(), q.Expr, q.Order, q.Limit, q.Pages, q.After != nil)
	matches, err := want.Ask(m.ctx, s, q)
	if m.cannot(err, q) {
		return
	}
	require.NoError(m.t, err)
	m.asked++
	m.found += min(matches, 1)
}

// changes compares what blocks did with the states around them.
func (m *machine) changes() {
	from := min(m.At(m.model), m.model.Head().Number+1)
	to := from + m.Uint64N(8)
	m.note("changes of %d to %d", from, to)
	s := must(m.ents.At(m.ctx, store.Head))(m.t)
	defer func() { require.NoError(m.t, s.Close()) }()
	list, err := model.Collect(s.Changes(m.ctx, from, to))
	_, wantErr := m.model.At(to)
	if _, before := m.model.At(max(from, 1) - 1); before != nil {
		wantErr = before
	}
	if m.model.HeadOnly {
		wantErr = store.ErrUnsupported
	}
	requireSameError(m.t, wantErr, err)
	if err != nil {
		return
	}
	var before map[entity.Key]*entity.Entity
	if last := m.model.BlockAt(max(from, 1) - 1); from > 0 && !last.Empty {
		before = m.stateAt(max(last.Number, m.model.Horizon()))
	}
	for n := from; n <= to; n++ {
		b := m.model.BlockAt(n)
		if b.Empty || b.Number != n {
			continue
		}
		require.NotEmpty(m.t, list, "block %d", n)
		after := m.stateAt(n)
		require.Equal(m.t, b, list[0].Head)
		requireChanges(m.t, list[0], before, after)
		list, before = list[1:], after
	}
	require.Empty(m.t, list)
}

// stateAt is what is visible at a block, by key.
func (m *machine) stateAt(block uint64) map[entity.Key]*entity.Entity {
	s := must(m.model.At(block))(m.t)
	state := map[entity.Key]*entity.Entity{}
	for _, e := range s.Visible() {
		state[e.Key] = e
	}
	return state
}

// requireChanges checks that a block's changes lead from one state to the next.
func requireChanges(t testing.TB, set store.BlockChanges, before, after map[entity.Key]*entity.Entity) {
	t.Helper()
	got := map[entity.Key]*entity.Entity{}
	maps.Copy(got, before)
	for _, e := range set.Expired {
		require.Contains(t, got, e.Key)
		require.LessOrEqual(t, e.Expiration, set.Head.Number)
		delete(got, e.Key)
	}
	for _, c := range set.Changed {
		require.True(t, c.Old != nil || c.New != nil)
		if c.Old != nil {
			requireSame(t, got[c.Old.Key], c.Old)
			delete(got, c.Old.Key)
		}
		if c.New != nil {
			require.NotContains(t, got, c.New.Key)
			require.Equal(t, set.Head.Number, c.New.LastModifiedAtBlock)
			got[c.New.Key] = c.New
		}
	}
	requireSame(t, after, got)
}

// sentinels are the errors that callers of Entities branch on.
var sentinels = []error{
	store.ErrNotFound, store.ErrExists, store.ErrInvalid, store.ErrBlockOrder, store.ErrBlockRange, store.ErrUnsupported,
	store.ErrHistory, store.ErrLayout, store.ErrConflict, store.ErrCorrupt, store.ErrClosed, store.ErrReadOnly,
}

// requireSameError compares errors by sentinel and by the operation at fault.
func requireSameError(t testing.TB, want, got error) {
	t.Helper()
	require.Equal(t, want == nil, got == nil, "want error: %v, got: %v", want, got)
	is := func(err error) int {
		return slices.IndexFunc(sentinels, func(s error) bool { return errors.Is(err, s) })
	}
	require.Equal(t, is(want), is(got), "want error: %v, got: %v", want, got)
	var wantOp, gotOp *entity.OpError
	require.Equal(t, errors.As(want, &wantOp), errors.As(got, &gotOp), "want error: %v, got: %v", want, got)
	if wantOp != nil {
		require.Empty(t, cmp.Diff(wantOp, gotOp, cmpopts.IgnoreFields(entity.OpError{}, "Err")))
	}
}
