package storetest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/storetest/model"
)

var (
	histories = flag.Int("varve.histories", 0, "how many random histories are tried on each layout and at each size; 0: as many as are quick")
	seed      = flag.Uint64("varve.seed", 0, "what random histories are drawn from; 0: the clock")
)

// randomSource returns what number i of some random things is drawn from. A failure names it.
func randomSource(t *testing.T, i int) *rand.Rand {
	from := *seed
	if from == 0 {
		from = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("-varve.seed=%d", from)
		}
	})
	return rand.New(rand.NewPCG(from, uint64(i)))
}

// one draws an element.
func one[T any](d *model.Drawer, list ...T) T { return model.Choose(d.Rand, list) }

// historyTime is what a random history may take, so that one that hangs fails.
const historyTime = 5 * time.Minute

// worldBlocks is how many blocks a store of many entities begins with. They hold two
// operations for each entity.
const worldBlocks = 24

// operations are what a machine may do, and how often: with few entities, and with many.
var operations = []struct {
	name      string
	few, many int
	do        func(*machine)
}{
	{"apply", 6, 2, (*machine).apply},
	{"load", 2, 1, (*machine).load},
	{"load other", 1, 0, (*machine).loadOther},
	{"rewind", 2, 1, (*machine).rewind},
	{"prune", 2, 0, (*machine).prune},
	{"reopen", 2, 1, (*machine).reopen},
	{"get", 2, 2, (*machine).get},
	{"query", 4, 24, (*machine).query},
	{"page", 2, 2, (*machine).page},
	{"settle", 2, 1, (*machine).settle},
	{"changes", 2, 0, (*machine).changes},
	{"hold", 1, 0, (*machine).hold},
}

// size is how large the stores of runDifferential are, and how many histories of how many
// steps they go through: on quick engines, and where opening and committing are slow.
type size struct {
	entities, steps int
	quick, slow     int
}

var sizes = []size{{0, 40, 60, 0}, {1000, 30, 2, 1}, {10_000, 15, 1, 0}}

// runDifferential does random things to a store and to the Model: blocks, loads, rewinds,
// prunes, merges, checkpoints, copies into other layouts, and opening with other parameters
// that must not matter. It asks both random questions, about few entities to which
// everything happens and about many. They must agree on every answer, every error and the
// digest. Since the Model judges, engines that cannot be in one program are compared as
// well. A failing history is told with its seed.
//
//	go test ./store/sqlite -run TestConformance/differential -varve.histories=1000 -timeout=0
func runDifferential(t *testing.T, h Harness) {
	layouts := h.layouts()
	if h.Layouts == nil && !h.slow() { // else those of the lab too are too slow
		layouts = schemas.EntityLayouts()
	}
	asked, found := 0, 0 // of many entities
	for _, layout := range layouts {
		for _, size := range sizes {
			n := h.histories(layout, size)
			t.Run(fmt.Sprintf("layout=%s/entities=%d", layout, size.entities), func(t *testing.T) {
				for i := range n {
					if !t.Run(fmt.Sprint(i), func(t *testing.T) {
						m := differential(t, h, layout, size, i)
						if size.entities > 0 {
							asked, found = asked+m.asked, found+m.found
						}
					}) {
						return
					}
				}
			})
		}
	}
	if asked > 1000 { // of one history most may have been rewound
		require.GreaterOrEqual(t, found, asked/8, "many questions find something")
	}
}

// histories returns how many histories to try on a layout.
func (h Harness) histories(layout string, size size) int {
	few, runs, lab := size.entities == 0, schemas.HasRuns(layout), !slices.Contains(h.layouts(), layout)
	switch {
	case *histories > 0:
		return *histories
	case few && h.slow() && h.repeats(layout):
		return 1
	case few && h.slow():
		return h.Checks
	case testing.Short() && (lab || few && h.repeats(layout)):
		return 0
	case testing.Short() && few:
		return 6 // under the race detector, too, everything happens some times
	case h.slow() || testing.Short():
		return size.slow
	case few && lab:
		return size.quick / 10 // it differs from another in its indexes alone
	case few && h.repeats(layout):
		return size.quick / 4
	case few && runs:
		return 2 * size.quick // each limit on what is put off leaves them in another state
	case few || runs || size.entities == sizes[1].entities && !lab && !h.repeats(layout):
		return size.quick
	}
	return 0
}

func differential(t *testing.T, h Harness, layout string, size size, i int) *machine {
	d := &model.Drawer{Rand: randomSource(t, i), Many: size.entities}
	if d.Many == 0 {
		d.Keys = model.FewKeys(8)
	}
	ctx, cancel := context.WithTimeout(t.Context(), historyTime)
	defer cancel()
	m := newMachine(ctx, t, d, h, layout, &model.Model{ExtendAdds: d.Chance(3)})
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(m.told())
		}
	})
	m.open()
	defer func() { require.NoError(t, m.db.Close()) }()
	if size.entities > 0 {
		m.begin()
	}
	steps := size.steps
	if size.entities > 0 && h.slow() {
		steps /= 3
	}
	for range steps {
		m.step(size.entities > 0)
	}
	m.check()
	if size.entities == 0 && d.Chance(3) {
		m.copyTo()
	}
	return m
}

// begin loads many entities, and by chance leaves nothing to be merged.
func (m *machine) begin() {
	for range worldBlocks {
		b := m.Block(m.model)
		b.Ops = nil
		m.Fill(m.model, &b, 2*m.Many/worldBlocks+1)
		require.NoError(m.t, m.model.Apply(b))
		m.fed = append(m.fed, b)
	}
	must(m.ents.Load(m.ctx, stream(m.fed, nil), nil))(m.t)
	m.note("load %d entities", m.Many)
	if m.Chance(2) {
		require.NoError(m.t, m.ents.Flush(m.ctx))
	}
}

func (m *machine) step(many bool) {
	all := 0
	weight := func(i int) int {
		if many {
			return operations[i].many
		}
		return operations[i].few
	}
	for i := range operations {
		all += weight(i)
	}
	at := m.IntN(all)
	for i := range operations {
		if at -= weight(i); at < 0 {
			operations[i].do(m)
			return
		}
	}
}
