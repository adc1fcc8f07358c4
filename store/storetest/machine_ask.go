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

// header compares the record of a block.
func (m *machine) header(s *step) {
	if m.copied {
		return
	}
	got := must(m.ents.HeaderAt(m.ctx, min(s.At, entity.MaxBlock)))(m.t)
	require.Equal(m.t, m.model.BlockAt(s.At), got, "block %d", s.At)
}

func (m *machine) get(s *step) {
	m.compareAt(s.At, func(snap *store.Snapshot, want *model.Snapshot) {
		for _, key := range s.Keys {
			wantEntity, wantErr := want.Get(key)
			found, err := snap.Get(m.ctx, key)
			requireSameError(m.t, wantErr, err)
			if err == nil {
				require.NoError(m.t, model.Same([]*entity.Entity{wantEntity}, []*entity.Entity{found}))
			}
		}
	})
}

// ask asks the step's questions, all on one snapshot.
func (m *machine) ask(s *step) {
	m.compareAt(s.At, func(snap *store.Snapshot, want *model.Snapshot) { m.askAll(s.Questions, snap, want) })
}

func (m *machine) askAll(list []model.Question, s *store.Snapshot, want *model.Snapshot) {
	for _, q := range list {
		matches, err := want.Ask(m.ctx, s, q)
		if m.tooLarge(err, q) {
			continue
		}
		require.NoError(m.t, err)
		m.asked++
		m.found += min(matches, 1)
	}
}

// tooLarge reports whether a question is too large for the engine, which must
// say so.
func (m *machine) tooLarge(err error, q model.Question) bool {
	if most := m.driver.Capabilities.MaxConditions; most > 0 && conditions(q.Expr) > most {
		require.ErrorIs(m.t, err, store.ErrUnsupported)
		return true
	}
	return errors.Is(err, driver.ErrMemory)
}

// hold opens a view and keeps it open during the steps that follow.
func (m *machine) hold(s *step) {
	m.closeHeld()
	if !m.scarce {
		m.held, m.heldWant = m.view(s.At)
	}
}

// release compares the view that is held and closes it.
func (m *machine) release(s *step) {
	if m.held != nil {
		m.compareAll(m.held, m.heldWant)
		m.askAll(s.Questions, m.held, m.heldWant)
	}
	m.closeHeld()
}

// closeHeld closes the view that is held.
func (m *machine) closeHeld() {
	if held := m.held; held != nil {
		m.held = nil
		require.NoError(m.t, held.Close())
	}
}

// paging is a result that is read page by page, each page from another
// snapshot.
type paging struct {
	model.Question
	opts      store.QueryOptions
	block     uint64
	digest    entity.Digest // of the block when the first page was read
	want, got []*entity.Entity
}

// page reads the first page of a result.
func (m *machine) page(s *step) {
	m.paging = nil
	want, err := m.model.At(s.At)
	if err != nil || len(s.Questions) == 0 {
		return
	}
	q := s.Questions[0]
	m.paging = &paging{
		Question: q, opts: store.QueryOptions{Order: q.Order, Limit: max(q.Limit, 1)},
		block: want.Block(), digest: m.model.BlockAt(want.Block()).Digest,
		want: must(want.Query(q.Expr, q.Order, 0, nil))(m.t),
	}
	m.next(s)
}

// next reads the next page, through a snapshot of any block, because the cursor
// names the block. All pages are the result at the first page's block, unless
// that was rewound or pruned meanwhile.
func (m *machine) next(s *step) {
	p := m.paging
	if p == nil {
		return
	}
	head := m.model.Head().Number
	rewound := p.block > head || m.model.BlockAt(p.block).Digest != p.digest
	pruned := p.block < m.model.Horizon()
	if m.model.HeadOnly && (rewound || p.block < head) {
		m.paging = nil
		return
	}
	m.compareAt(s.At, func(snap *store.Snapshot, _ *model.Snapshot) {
		found, err := model.Collect(snap.Query(m.ctx, p.Expr, &p.opts))
		switch {
		case p.opts.After != "" && (rewound || pruned):
			require.ErrorIs(m.t, err, store.ErrBlockRange)
			require.True(m.t, errors.Is(err, store.ErrRewound) == rewound || pruned, "%v", err)
			m.paging = nil
			return
		case m.tooLarge(err, p.Question):
			m.paging = nil
			return
		}
		require.NoError(m.t, err)
		p.got = append(p.got, found...)
		require.LessOrEqual(m.t, len(p.got), len(p.want), "pages repeat")
		if len(found) < p.opts.Limit {
			m.paging = nil
			require.NoError(m.t, model.Same(p.want, p.got))
			return
		}
		p.opts.After = must(snap.Cursor(found[len(found)-1], &p.opts))(m.t)
	})
}

// changes compares the changes of blocks with the states around them.
func (m *machine) changes(s *step) {
	from, to := min(s.At, m.model.Head().Number+1), s.To
	snap := must(m.ents.At(m.ctx, store.Head))(m.t)
	defer func() { require.NoError(m.t, snap.Close()) }()
	list, err := model.Collect(snap.Changes(m.ctx, from, to))
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
	m.differ(snap, max(from, 1)-1, to)
	m.versions(snap)
	m.compareAt(to, func(snap *store.Snapshot, _ *model.Snapshot) { m.versions(snap) })
}

// differ compares Diff of two blocks with their states. The reasons why
// entities ended come from Changes, which was checked before.
func (m *machine) differ(snap *store.Snapshot, from, to uint64) {
	for _, n := range []*uint64{&from, &to} {
		if b := m.model.BlockAt(*n); !b.Empty {
			*n = max(b.Number, m.model.Horizon())
		}
	}
	if from > to {
		return
	}
	before, after := m.stateAt(from), m.stateAt(to)
	want := map[entity.Key]store.Difference{}
	for set, err := range snap.Changes(m.ctx, from+1, to) {
		require.NoError(m.t, err)
		for _, c := range set.Changed {
			want[c.Key] = store.Difference{Block: set.Head.Number}
		}
		for _, e := range set.Expired {
			if want[e.Key].Block < set.Head.Number { // else it was created again
				want[e.Key] = store.Difference{Block: set.Head.Number, Expired: true}
			}
		}
	}
	for key, d := range want {
		d.Change = entity.Change{Key: key, Old: before[key], New: after[key]}
		if want[key] = d; d.Old == d.New {
			delete(want, key)
		}
	}
	got := map[entity.Key]store.Difference{}
	for d, err := range snap.Diff(m.ctx, from, to) {
		require.NoError(m.t, err)
		require.NotContains(m.t, got, d.Key)
		got[d.Key] = d
	}
	requireSame(m.t, want, got, "from block %d to %d", from, to)
}

// versions compares the versions of each entity with the states that show them.
func (m *machine) versions(snap *store.Snapshot) {
	want := map[entity.Key][]entity.Version{} // the oldest first
	head := m.model.Head()
	var blocks []uint64
	for b := head; !b.Empty && b.Number > m.model.Horizon(); b = m.model.BlockAt(b.Number - 1) {
		if blocks = append(blocks, b.Number); b.Number == 0 {
			break
		}
	}
	for _, n := range slices.Backward(append(blocks, m.model.Horizon())) {
		state := m.stateAt(n)
		for key, list := range want {
			if last := &list[len(list)-1]; state[key] != last.Entity {
				last.End = min(last.End, n)
			}
		}
		for key, e := range state {
			if list := want[key]; len(list) == 0 || list[len(list)-1].Entity != e {
				want[key] = append(list, entity.Version{Entity: e, End: e.Expiration})
			}
		}
	}
	for key, list := range want {
		list = slices.DeleteFunc(list, func(v entity.Version) bool { return v.Entity.LastModifiedAtBlock > snap.Number() })
		slices.Reverse(list)
		got, err := model.Collect(snap.Versions(m.ctx, key))
		if len(list) == 0 {
			require.ErrorIs(m.t, err, store.ErrNotFound)
			continue
		}
		require.NoError(m.t, err)
		requireSame(m.t, list, got, "versions of %s up to block %d", key, snap.Number())
	}
}

// stateAt returns the entities that are visible at a block, by key.
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

// sentinels are the errors that callers of Entities distinguish.
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
