package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/storetest/model"
)

// machine is a store beside the model of it. Each of its operations does the same to both
// and compares what they say.
type machine struct {
	*model.Drawer
	t      *testing.T
	ctx    context.Context // of a deadline
	h      Harness
	url    string // with what is chosen once
	layout string
	driver driver.Driver
	db     *store.DB
	ents   *store.Entities
	model  *model.Model
	copied bool           // by its history
	pruned bool           // before it was copied, so that its digests are others
	scarce bool           // the log is so short that a view which stays open would hold up writers
	fed    []entity.Block // that the store holds, as they were given to it
	did    []func() string

	asked, found int // questions, and those that something matches
}

// newMachine returns a machine whose store is to be opened.
func newMachine(ctx context.Context, t *testing.T, d *model.Drawer, h Harness, layout string, of *model.Model) *machine {
	m := &machine{Drawer: d, t: t, ctx: ctx, h: h, url: h.quickURL(t), layout: layout, model: of}
	m.driver = linkedDriver(t, m.url)
	d.NUL = 12
	if m.model.NoNUL = !m.driver.Capabilities.TextNUL; m.model.NoNUL {
		d.NUL = 200
	}
	if m.has("page_size") && m.Many == 0 {
		m.url = withParams(t, m.url, "page_size", one(d, "4096", "512", "1024", "65536"))
	}
	return m
}

// has tells whether URLs of the engine may have a parameter.
func (m *machine) has(param string) bool {
	_, is := m.driver.Params[param]
	return is
}

// note keeps what is done, to be told when it fails.
func (m *machine) note(format string, args ...any) {
	m.did = append(m.did, func() string { return fmt.Sprintf(format, args...) })
}

// brief writes blocks without the rest of long contents.
func brief(blocks ...entity.Block) (text string) {
	for _, b := range blocks {
		b.Ops = slices.Clone(b.Ops)
		for i := range b.Ops {
			b.Ops[i].Content = b.Ops[i].Content[:min(len(b.Ops[i].Content), 8)]
		}
		text += fmt.Sprintf("%+v\n", b)
	}
	return text
}

func (m *machine) open() {
	params := m.params()
	m.note("open %s with %q", m.layout, params)
	m.db = must(store.Open(m.ctx, withParams(m.t, m.url, params...), nil))(m.t)
	opts := store.EntityOptions{Layout: m.layout, ExtendAdds: m.model.ExtendAdds}
	if m.ents != nil && m.Chance(2) {
		opts = store.EntityOptions{} // the store knows
	}
	m.ents = must(m.db.Entities(m.ctx, &opts))(m.t)
	m.model.HeadOnly = !m.ents.Temporal()
}

// params draws what may be another one each time the store is opened.
func (m *machine) params() (pairs []string) {
	memory := []string{"256MiB", "64MiB"}
	if m.has("page_size") {
		memory = []string{"256MiB", "64KiB", "1MiB"} // of page caches, which need hold nothing
		pairs = append(pairs, "mmap", one(m.Drawer, "0", "65536", "100000000"))
	}
	if m.Many > 0 {
		memory = memory[:1]
	}
	pairs = append(pairs, "memory", one(m.Drawer, memory...))
	if m.driver.Capabilities.WALCheckpoint {
		policy, frames := one(m.Drawer, driver.Background, driver.Inline, driver.Manual), one(m.Drawer, "1000", "1", "20")
		pairs = append(pairs, "checkpoint", string(policy), "checkpoint_frames", frames)
		m.scarce = frames != "1000"
	}
	if schemas.HasRuns(m.layout) { // with 1 and 3 merges are met in every state, with the last in none
		backlog := []string{"3", "1", "3", "1", "20", "100000"}
		switch {
		case m.Many > 0 && m.h.slow():
			backlog = []string{"1000"}
		case m.Many > 0:
			backlog = []string{"1000", "40", "100000"}
		}
		pairs = append(pairs, "backlog", one(m.Drawer, backlog...))
	}
	return pairs
}

func (m *machine) reopen() {
	require.NoError(m.t, m.db.Close())
	m.open()
	m.checkState()
}

// check compares head and digest, which cover the whole history, and what is recorded of a
// block.
func (m *machine) check() {
	m.t.Helper()
	m.checkHead(must(m.ents.Head(m.ctx))(m.t))
	if m.copied {
		return // a history has no trace of blocks without a hash that changed nothing
	}
	number := m.At(m.model)
	got := must(m.ents.HeaderAt(m.ctx, min(number, entity.MaxBlock)))(m.t)
	require.Equal(m.t, m.model.BlockAt(number), got, "block %d", number)
	snap := must(m.ents.At(m.ctx, store.Head))(m.t)
	defer snap.Close()
	require.Equal(m.t, m.model.Oldest(), must(snap.OldestHeader(m.ctx))(m.t), "with the horizon %d", m.model.Horizon())
}

func (m *machine) checkHead(got store.BlockHeader) {
	m.t.Helper()
	want := m.model.Head()
	if m.pruned {
		want.Digest = got.Digest
	}
	require.Equal(m.t, want, got)
}

// checkState compares everything that is visible at the head.
func (m *machine) checkState() {
	m.t.Helper()
	m.check()
	if m.Many == 0 {
		m.compareAt(store.Head, m.compareAll)
	}
}

func (m *machine) compareAll(s *store.Snapshot, want *model.Snapshot) {
	m.t.Helper()
	require.NoError(m.t, model.Same(want.Visible(), must(model.Collect(s.Query(m.ctx, nil, nil)))(m.t)))
}

// compareAt opens both at a block and calls f when that succeeds.
func (m *machine) compareAt(block uint64, f func(s *store.Snapshot, want *model.Snapshot)) {
	m.t.Helper()
	want, wantErr := m.model.At(block)
	s, err := m.ents.At(m.ctx, block)
	requireSameError(m.t, wantErr, err)
	if err != nil {
		return
	}
	defer func() { require.NoError(m.t, s.Close()) }()
	require.Equal(m.t, want.Block(), s.Number())
	f(s, want)
}

func (m *machine) apply() {
	b := m.Block(m.model)
	m.did = append(m.did, func() string { return "apply " + brief(b) })
	before := m.model.Head().Digest
	wantErr := m.model.Apply(b)
	applied, err := m.ents.Apply(m.ctx, b)
	requireSameError(m.t, wantErr, err)
	if err != nil {
		m.checkState()
		return
	}
	m.checkHead(applied.Head)
	require.True(m.t, before == applied.Head.Digest || applied.Changes > 0 || m.pruned)
	m.fed = append(m.fed, b)
}

// load applies several blocks in one go, by chance behind some that the store
// holds, which are skipped. By chance the stream ends with an error, or the load is given up
// amid it. What of the blocks is kept then, or when one is refused, depends on
// where transactions end, which the store tells.
func (m *machine) load() {
	ahead := m.model.Clone()
	blocks := slices.Clone(m.fed[m.IntN(len(m.fed)+1):])
	held := len(blocks)
	var valid []entity.Block // that the store may keep
	var wantErr error
	for range 1 + m.IntN(4) {
		b := m.Block(ahead)
		if head := m.model.Head(); !head.Empty && b.Number <= head.Number && len(blocks) == held {
			continue // another block of this number: another history
		}
		blocks = append(blocks, b)
		if wantErr == nil {
			if wantErr = ahead.Apply(b); wantErr == nil {
				valid = append(valid, b)
			}
		}
	}
	m.did = append(m.did, func() string { return fmt.Sprintf("load, of which %d are held, %s", held, brief(blocks...)) })
	ctx, giveUp := context.WithCancel(m.ctx)
	defer giveUp()
	end := one(m.Drawer, nil, nil, errSource, context.Canceled)
	source, given, last := stream(blocks, end), 0, m.IntN(len(blocks)+1)
	loaded, err := m.ents.Load(ctx, func(yield func(entity.Block, error) bool) {
		for b, err := range source {
			if given == last && errors.Is(end, context.Canceled) {
				giveUp()
			}
			if given++; !yield(b, err) {
				return
			}
		}
	}, &store.LoadOptions{Changes: one(m.Drawer, 1+m.IntN(8), 1<<20), Progress: func(p store.Applied) {
		require.Equal(m.t, p.Head, must(m.ents.Head(m.ctx))(m.t), "the head that was told is committed")
	}})
	if wantErr == nil || errors.Is(err, context.Canceled) {
		wantErr = end
		require.ErrorIs(m.t, err, end)
	}
	requireSameError(m.t, wantErr, err)
	if !errors.Is(err, context.Canceled) && (err == nil || errors.Is(err, errSource)) {
		require.Equal(m.t, ahead.Head(), loaded.Head)
		require.Equal(m.t, len(blocks), loaded.Skipped+loaded.Blocks)
	}
	before := m.model.Head()
	require.True(m.t, !loaded.Head.Empty || before.Empty, "a load never takes back blocks")
	require.GreaterOrEqual(m.t, loaded.Head.Number, before.Number, "a load never takes back blocks")
	for _, b := range valid {
		if !loaded.Head.Empty && b.Number <= loaded.Head.Number {
			require.NoError(m.t, m.model.Apply(b))
		}
	}
	for _, b := range blocks[held:] {
		if n := len(m.fed); n == 0 || b.Number > m.fed[n-1].Number {
			m.fed = append(m.fed, b)
		}
	}
	m.forget()
	m.checkState()
}

// loadOther loads another history than the store's, which refuses it and stays as it is,
// wherever that begins. A store that has no history may take it for its own.
func (m *machine) loadOther() {
	if len(m.fed) == 0 || m.model.Horizon() > 0 {
		return
	}
	i, low := m.IntN(len(m.fed)), uint64(0)
	if i > 0 && i+1 < len(m.fed) && m.Chance(2) && m.model.BlockAt(m.fed[i].Number).Digest != m.model.BlockAt(m.fed[i-1].Number).Digest {
		m.loadRefused(slices.Concat(m.fed[m.IntN(i):i], m.fed[i+1:])) // without one of its blocks
		return
	}
	ahead := &model.Model{ExtendAdds: m.model.ExtendAdds, NoNUL: m.model.NoNUL}
	for _, b := range m.fed[:i] {
		require.NoError(m.t, ahead.Apply(b))
		low = b.Number + 1
	}
	other := entity.Block{Number: low + m.Uint64N(m.fed[i].Number-low+1)}
	m.Fill(ahead, &other, m.IntN(4))
	vague := slices.ContainsFunc(other.Ops, func(op entity.Op) bool { // the block alone does not tell what it changes
		return op.Kind == entity.Expire || op.Kind == entity.ExtendBTL && ahead.ExtendAdds
	})
	if vague || ahead.Apply(other) != nil || ahead.Head().Digest == m.model.BlockAt(other.Number).Digest {
		return
	}
	m.loadRefused(slices.Concat(m.fed[m.IntN(i+1):i], []entity.Block{other}, m.fed[i+1:]))
}

// loadRefused loads blocks that are none of the store's history.
func (m *machine) loadRefused(blocks []entity.Block) {
	m.did = append(m.did, func() string { return "load another history " + brief(blocks...) })
	_, err := m.ents.Load(m.ctx, stream(blocks, nil), nil)
	if err != nil || !m.model.HeadOnly {
		require.ErrorIs(m.t, err, store.ErrHistory)
	}
	m.checkState()
}

func (m *machine) rewind() {
	to := m.At(m.model)
	m.note("rewind to %d", to)
	wantErr := m.model.Rewind(to)
	requireSameError(m.t, wantErr, m.ents.Rewind(m.ctx, to))
	m.forget()
	m.checkState()
}

// forget drops blocks that the store does not hold, or not any more.
func (m *machine) forget() {
	head := m.model.Head()
	i := slices.IndexFunc(m.fed, func(b entity.Block) bool { return head.Empty || b.Number > head.Number })
	if i >= 0 {
		m.fed = m.fed[:i]
	}
}

func (m *machine) prune() {
	before := m.At(m.model)
	m.note("prune before %d", before)
	wantErr := m.model.Prune(before)
	requireSameError(m.t, wantErr, m.ents.Prune(m.ctx, before))
	m.checkState()
}

// settle does what the layout or the engine puts off, by chance only a part of it, and lets
// the store check and count itself.
func (m *machine) settle() {
	m.note("settle")
	if m.Chance(2) {
		require.NoError(m.t, m.ents.Flush(m.ctx))
	}
	if m.driver.Capabilities.WALCheckpoint && m.Chance(2) {
		must(driver.Checkpoint(m.ctx, m.db.Engine(), m.Chance(2)))(m.t)
	}
	v := must(m.ents.Verify(m.ctx))(m.t)
	require.Equal(m.t, !m.model.HeadOnly && m.model.Horizon() == 0, v.Digest)
	head := must(m.model.At(store.Head))(m.t)
	summary := must(m.ents.Summary(m.ctx))(m.t)
	require.Equal(m.t, []uint64{uint64(len(head.Visible())), m.model.Horizon()}, []uint64{summary.Live, summary.Horizon})
	m.checkState()
}

// hold keeps a view open while blocks come and go, and compares it then.
func (m *machine) hold() {
	if m.scarce {
		return
	}
	at := m.At(m.model)
	m.note("hold a view of %d", at)
	m.compareAt(at, func(s *store.Snapshot, want *model.Snapshot) {
		for range 1 + m.IntN(3) {
			one(m.Drawer, m.apply, m.load, m.rewind, m.prune)()
		}
		m.compareAll(s, want)
		m.ask(s, want)
	})
}

// copyTo makes another store of this one, by its history or a backup, which goes on alike.
func (m *machine) copyTo() {
	way, layouts := one(m.Drawer, "history", "backup"), schemas.EntityLayouts()
	switch spreads := m.db.Engine().Capabilities().Spreads; {
	case way == "backup":
		layouts = []string{m.layout}
	case m.model.HeadOnly:
		return
	case spreads: // not all layouts can be
		layouts = m.h.layouts()
	}
	other := newMachine(m.ctx, m.t, m.Drawer, m.h, one(m.Drawer, layouts...), m.model.Clone())
	m.did = append(m.did, func() string { return "copy by " + way + " into" }, func() string { return other.told() })
	switch way {
	case "history":
		other.copied, other.pruned = true, m.model.Horizon() > 0
		other.open()
		must(other.ents.Import(m.ctx, m.ents.History(m.ctx), &store.LoadOptions{Changes: 4}))(m.t)
	case "backup":
		var file bytes.Buffer
		contents := must(m.db.Backup(m.ctx, &file, nil))(m.t)
		require.Equal(m.t, m.model.Head(), contents.Head)
		db := must(store.Open(m.ctx, other.url, nil))(m.t)
		restored, err := db.Restore(m.ctx, &file, nil)
		require.NoError(m.t, errors.Join(err, db.Close()))
		require.Equal(m.t, contents, restored)
		other.open()
	}
	defer func() { require.NoError(m.t, other.db.Close()) }()
	other.checkState()
	for range 3 {
		other.get()
		other.query()
		other.apply()
	}
	other.checkState()
}

func (m *machine) told() (all string) {
	for _, f := range m.did {
		all += f() + "\n"
	}
	return all
}
