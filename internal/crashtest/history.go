package crashtest

import (
	"fmt"
	"math/rand/v2"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/storetest/model"
)

// The steps that change entities.
const (
	stepApply  = "apply"
	stepLoad   = "load"
	stepRewind = "rewind"
	stepPrune  = "prune"
)

// entityKeys are the keys of entities. They are few, so that each entity
// changes often and a half-done merge is noticed.
var entityKeys = model.FewKeys(48)

// newRand returns the generator of a seed.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) }

// history has the successive states of an entity store that a journal
// describes.
type history struct {
	states []model.Model // the first one is the empty store
	acked  int           // index of the last state that was acknowledged
}

// newHistory replays a journal.
func newHistory(records []record) (*history, error) {
	h := &history{states: []model.Model{{}}}
	for i, r := range records {
		switch {
		case r.Resumed:
			if r.State >= len(h.states) {
				return nil, fmt.Errorf("journal line %d: state %d of %d", i+1, r.State, len(h.states))
			}
			h.resume(r.State)
		case r.Ack:
			h.acked = len(h.states) - 1
		default:
			next, err := h.next(r)
			if err != nil {
				return nil, fmt.Errorf("journal line %d: %w", i+1, err)
			}
			h.announce(next)
		}
	}
	return h, nil
}

func (h *history) last() model.Model { return h.states[len(h.states)-1] }

// announce adds the states that a step leads through.
func (h *history) announce(s *step) { h.states = append(h.states, s.after...) }

// resume records that the store was found in state i.
func (h *history) resume(i int) { h.states, h.acked = h.states[:i+1], i }

// find returns the newest allowed state that has this head and horizon. Unless
// lossy, states before the last acknowledged one are not allowed.
func (h *history) find(head store.BlockHeader, horizon uint64, lossy bool) (int, bool) {
	oldest := h.acked
	if lossy {
		oldest = 0
	}
	for i := len(h.states) - 1; i >= oldest; i-- {
		if h.states[i].Horizon() == horizon && h.states[i].Head() == head {
			return i, true
		}
	}
	return 0, false
}

// step is one change of the store: its operations, and the states that it leads
// through. A crash may leave the store in any of these states.
type step struct {
	record
	blocks  []entity.Block
	changes int // of a load: changed entities after which it commits
	after   []model.Model
}

// next builds the step of a record after the last state.
func (h *history) next(r record) (*step, error) {
	s := &step{record: r}
	to := h.last() // a copy: the list of blocks is only ever appended to
	switch r.Step {
	case stepApply, stepLoad:
		return s, s.draw(to)
	case stepRewind:
		if err := to.Rewind(r.To); err != nil {
			return nil, fmt.Errorf("rewind to %d: %w", r.To, err)
		}
	case stepPrune:
		if err := to.Prune(r.To); err != nil {
			return nil, fmt.Errorf("prune before %d: %w", r.To, err)
		}
	default:
		return nil, fmt.Errorf("unknown step %q", r.Step)
	}
	s.after = []model.Model{to}
	return s, nil
}

// draw draws the blocks of a step, and the state after each.
func (s *step) draw(to model.Model) error {
	rng := newRand(s.Seed)
	n := 1
	if s.Step == stepLoad {
		n, s.changes = 2+rng.IntN(5), 1+rng.IntN(12)
	}
	d := model.Drawer{Rand: rng, Keys: entityKeys, Valid: true}
	for range n {
		b := d.Block(&to)
		if err := to.Apply(b); err != nil {
			return fmt.Errorf("block %d: %w", b.Number, err)
		}
		s.blocks = append(s.blocks, b)
		s.after = append(s.after, to)
	}
	return nil
}
