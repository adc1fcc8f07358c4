package storetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/storetest/model"
)

// machine is a store and its model. It runs each step of a history on both and
// compares their answers.
type machine struct {
	t       testing.TB
	ctx     context.Context // with a deadline, so that a history that hangs fails
	h       Harness
	many    bool   // the store holds too many entities to compare all after each step
	url     string // with the parameters of the last open
	driver  driver.Driver
	db      *store.DB
	ents    *store.Entities
	model   *model.Model
	history []step

	copied bool           // by history, which omits empty blocks without a hash
	pruned bool           // pruned before it was copied, so its digests differ from the model's
	scarce bool           // the log limit is so low that an open view would block writers
	fed    []entity.Block // the blocks that the store was given

	held     *store.Snapshot // kept open while blocks come and go; nil: none
	heldWant *model.Snapshot
	paging   *paging // a result that is read page by page; nil: none

	asked, found int // questions, and how many of them match something
}

// logFramesLong is a log limit that the blocks written during a held view do
// not reach.
const logFramesLong = "1000"

// historyTime is how long a history may take before it counts as hanging.
const historyTime = 5 * time.Minute

// historyContext ends after the time of a history.
func historyContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), historyTime)
	t.Cleanup(cancel)
	return ctx
}

// newMachine returns a machine whose first step opens the store.
func newMachine(t testing.TB, h Harness, many bool) *machine {
	m := &machine{t: t, h: h, many: many, url: h.quickURL(t)}
	m.ctx = historyContext(t)
	m.driver = linkedDriver(t, m.url)
	m.model = &model.Model{NoNUL: !m.driver.Capabilities.TextNUL}
	return m
}

// verb returns the method for a step; nil for an unknown one.
func (m *machine) verb(name string) func(*step) {
	return map[string]func(*step){
		"open":       m.open,
		"apply":      m.apply,
		"load":       m.load,
		"refuse":     m.refuse,
		"rewind":     m.rewind,
		"prune":      m.prune,
		"flush":      m.flush,
		"checkpoint": m.checkpoint,
		"verify":     m.verify,
		"copy":       m.copy,
		"header":     m.header,
		"get":        m.get,
		"ask":        m.ask,
		"hold":       m.hold,
		"release":    m.release,
		"page":       m.page,
		"next":       m.next,
		"changes":    m.changes,
	}[name]
}

// do runs a step and records it in the history.
func (m *machine) do(s step) {
	m.history = append(m.history, s)
	verb := m.verb(s.Do)
	require.NotNil(m.t, verb, "unknown step %q", s.Do)
	verb(&s)
}

// accepts reports whether the engine has a parameter. A history that is kept
// may come from another engine.
func (m *machine) accepts(param string) bool {
	switch param {
	case "page_size", "mmap":
		_, is := m.driver.Params[param]
		return is
	case "checkpoint", "checkpoint_frames":
		return m.driver.Capabilities.WALCheckpoint
	}
	return true
}

// open opens the store, or reopens it with other parameters that must not
// affect results. Without a layout the store uses the recorded one.
func (m *machine) open(s *step) {
	first := m.db == nil
	if first {
		m.model.ExtendAdds = s.ExtendAdds
	}
	m.close()
	for name, value := range s.Params {
		if m.accepts(name) {
			m.url = withParams(m.t, m.url, name, value)
		}
	}
	if frames, is := s.Params["checkpoint_frames"]; is {
		m.scarce = frames != logFramesLong
	}
	m.db = must(store.Open(m.ctx, m.url, nil))(m.t)
	var opts store.EntityOptions
	if first || s.Layout != "" {
		opts = store.EntityOptions{Layout: m.h.layout, ExtendAdds: m.model.ExtendAdds}
	}
	m.ents = must(m.db.Entities(m.ctx, &opts))(m.t)
	m.model.HeadOnly = !m.ents.Temporal()
	if !first {
		m.checkState()
	}
}

// close closes the store and the view that is held.
func (m *machine) close() {
	m.closeHeld()
	if m.db != nil {
		require.NoError(m.t, m.db.Close())
	}
}

// checkHead compares the head, whose digest covers the whole history.
func (m *machine) checkHead(got store.BlockHeader) {
	m.t.Helper()
	want := m.model.Head()
	if m.pruned {
		want.Digest = got.Digest
	}
	require.Equal(m.t, want, got)
}

// checkState compares the head, the oldest block and, unless there are many,
// all visible entities.
func (m *machine) checkState() {
	m.t.Helper()
	m.checkHead(must(m.ents.Head(m.ctx))(m.t))
	m.compareAt(store.Head, func(s *store.Snapshot, want *model.Snapshot) {
		if !m.copied {
			oldest := must(s.OldestHeader(m.ctx))(m.t)
			require.Equal(m.t, m.model.Oldest(), oldest, "with the horizon %d", m.model.Horizon())
		}
		if !m.many {
			m.compareAll(s, want)
		}
	})
}

func (m *machine) compareAll(s *store.Snapshot, want *model.Snapshot) {
	m.t.Helper()
	require.NoError(m.t, model.Same(want.Visible(), collect(m.t, s.Query(m.ctx, nil, nil))))
}

// view opens both at a block. It returns nil if that is refused by both.
func (m *machine) view(block uint64) (*store.Snapshot, *model.Snapshot) {
	m.t.Helper()
	want, wantErr := m.model.At(block)
	s, err := m.ents.At(m.ctx, block)
	requireSameError(m.t, wantErr, err)
	if err != nil {
		return nil, nil
	}
	require.Equal(m.t, want.Block(), s.Number())
	return s, want
}

// compareAt opens both at a block and calls f unless that is refused.
func (m *machine) compareAt(block uint64, f func(s *store.Snapshot, want *model.Snapshot)) {
	m.t.Helper()
	if s, want := m.view(block); s != nil {
		defer func() { require.NoError(m.t, s.Close()) }()
		f(s, want)
	}
}

func (m *machine) apply(s *step) {
	for _, b := range s.Blocks {
		before := m.model.Head().Digest
		wantErr := m.model.Apply(b)
		applied, err := m.ents.Apply(m.ctx, b)
		requireSameError(m.t, wantErr, err)
		if err != nil {
			m.checkState()
			continue
		}
		m.checkHead(applied.Head)
		require.True(m.t, before == applied.Head.Digest || applied.Changes > 0 || m.pruned)
		m.fed = append(m.fed, b)
	}
}

// load loads blocks. The store may already have the first of them and skips
// these. The stream may break, or the call may be cancelled. Then the model
// uses the store's head, because only the store knows where its transactions
// ended.
func (m *machine) load(s *step) {
	ahead, before := m.model.Clone(), m.model.Head()
	held := min(s.Held, len(m.fed))
	blocks := slices.Clone(m.fed[len(m.fed)-held:])
	var valid []entity.Block // that the store may keep
	var wantErr error
	for _, b := range s.Blocks {
		if !before.Empty && b.Number <= before.Number && len(blocks) == held {
			continue // another block of a number that the store has is another history: see refuse
		}
		blocks = append(blocks, b)
		if wantErr == nil {
			wantErr = ahead.Apply(b)
		}
		if wantErr == nil {
			valid = append(valid, b)
		}
	}

	// Load them.
	ends := map[string]error{"broken": errSource, "cancelled": context.Canceled}
	end, given := ends[s.End], 0
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	source := stream(blocks, end)
	loaded, err := m.ents.Load(ctx, func(yield func(entity.Block, error) bool) {
		for b, err := range source {
			if given == s.Given && s.End == "cancelled" {
				cancel()
			}
			if given++; !yield(b, err) {
				return
			}
		}
	}, &store.LoadOptions{Changes: s.Changes, Progress: func(p store.Applied) {
		require.Equal(m.t, p.Head, must(m.ents.Head(m.ctx))(m.t), "the head that is reported is committed")
	}})

	// Compare the outcome.
	if wantErr == nil || errors.Is(err, context.Canceled) {
		wantErr = end
		require.ErrorIs(m.t, err, end)
	}
	requireSameError(m.t, wantErr, err)
	if err == nil || errors.Is(err, errSource) {
		require.Equal(m.t, ahead.Head(), loaded.Head)
		require.Equal(m.t, len(blocks), loaded.Skipped+loaded.Blocks)
	}
	require.True(m.t, !loaded.Head.Empty || before.Empty, "a load never takes back blocks")
	require.GreaterOrEqual(m.t, loaded.Head.Number, before.Number, "a load never takes back blocks")

	// Take over the blocks that the store has kept.
	for _, b := range valid {
		if !loaded.Head.Empty && b.Number <= loaded.Head.Number {
			require.NoError(m.t, m.model.Apply(b))
			m.fed = append(m.fed, b)
		}
	}
	m.checkState()
}

// refuse loads a different history. The store must refuse it, wherever the
// difference begins, and stay unchanged. The other history lacks one of the
// store's blocks or, if the step has a block, has that one instead.
func (m *machine) refuse(s *step) {
	if len(m.fed) == 0 || m.model.Horizon() > 0 {
		return
	}
	at := len(m.fed) - 1 - min(s.Cut, len(m.fed)-1)
	from := max(0, at-s.Held)
	before, low := m.before(at)
	blocks := slices.Clone(m.fed[from:at])
	if len(s.Blocks) > 0 {
		other := s.Blocks[0]
		// The effects of some operations depend on the blocks before.
		vague := slices.ContainsFunc(other.Ops, func(op entity.Op) bool {
			return op.Kind == entity.Expire || op.Kind == entity.ExtendBTL && before.ExtendAdds
		})
		if vague || other.Number < low || other.Number > m.fed[at].Number ||
			before.Apply(other) != nil ||
			before.Head().Digest == m.model.BlockAt(other.Number).Digest {
			return
		}
		blocks = append(blocks, other)
	} else if from == at || s.Cut == 0 || m.model.BlockAt(m.fed[at].Number).Digest == before.Head().Digest {
		return
	}
	_, err := m.ents.Load(m.ctx, stream(slices.Concat(blocks, m.fed[at+1:]), nil), nil)
	if err != nil || !m.model.HeadOnly {
		require.ErrorIs(m.t, err, store.ErrHistory)
	}
	m.checkState()
}

// before returns the model before one of the store's blocks, and the lowest
// number that a block may have there.
func (m *machine) before(at int) (before *model.Model, low uint64) {
	before = &model.Model{ExtendAdds: m.model.ExtendAdds, NoNUL: m.model.NoNUL}
	for _, b := range m.fed[:at] {
		require.NoError(m.t, before.Apply(b))
		low = b.Number + 1
	}
	return before, low
}

func (m *machine) rewind(s *step) {
	requireSameError(m.t, m.model.Rewind(s.At), m.ents.Rewind(m.ctx, s.At))
	head := m.model.Head()
	m.fed = slices.DeleteFunc(m.fed, func(b entity.Block) bool { return head.Empty || b.Number > head.Number })
	m.checkState()
}

func (m *machine) prune(s *step) {
	requireSameError(m.t, m.model.Prune(s.At), m.ents.Prune(m.ctx, s.At))
	m.checkState()
}

// flush merges everything.
func (m *machine) flush(*step) {
	require.NoError(m.t, m.ents.Flush(m.ctx))
	m.checkState()
}

func (m *machine) checkpoint(s *step) {
	m.closeHeld() // a checkpoint that truncates waits for readers
	if m.driver.Capabilities.WALCheckpoint {
		must(driver.Checkpoint(m.ctx, m.db.Engine(), s.Truncate))(m.t)
	}
}

// verify runs the store's check and counts its rows.
func (m *machine) verify(*step) {
	v := must(m.ents.Verify(m.ctx))(m.t)
	require.Equal(m.t, !m.model.HeadOnly && m.model.Horizon() == 0, v.Digest)
	head := must(m.model.At(store.Head))(m.t)
	summary := must(m.ents.Summary(m.ctx))(m.t)
	require.EqualValues(m.t, len(head.Visible()), summary.Live)
	require.Equal(m.t, m.model.Horizon(), summary.Horizon)
	m.checkState()
}

// copy creates another store from this one's history or backup and continues
// with it.
func (m *machine) copy(s *step) {
	if s.Way == "history" && m.model.HeadOnly {
		return
	}
	m.closeHeld()
	from, ents := m.db, m.ents
	m.db, m.url, m.fed = nil, m.h.quickURL(m.t), nil
	defer func() { require.NoError(m.t, from.Close()) }()
	next := *s
	next.ExtendAdds = m.model.ExtendAdds
	switch s.Way {
	case "history":
		if slices.Contains(schemas.EntityLayouts(), s.Layout) {
			m.h.layout = s.Layout
		}
		m.copied, m.pruned = true, m.pruned || m.model.Horizon() > 0
		m.open(&next)
		must(m.ents.Import(m.ctx, ents.History(m.ctx), &store.LoadOptions{Changes: 4}))(m.t)
	case "backup":
		var file bytes.Buffer
		contents := must(from.Backup(m.ctx, &file, nil))(m.t)
		if !m.pruned {
			require.Equal(m.t, m.model.Head(), contents.Head)
		}
		db := must(store.Open(m.ctx, m.url, nil))(m.t)
		restored, err := db.Restore(m.ctx, &file, nil)
		require.NoError(m.t, errors.Join(err, db.Close()))
		require.Equal(m.t, contents, restored)
		m.open(&next)
	}
	m.checkState()
}
