package storetest

import (
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/storetest/model"
)

// historyDrawer draws the steps of a machine while it runs them, because each
// step depends on the model's state.
type historyDrawer struct {
	*model.Drawer
	*machine
}

// draw draws and runs all steps.
func (d *historyDrawer) draw(size size) {
	d.do(step{Do: "open", Layout: d.h.layout, ExtendAdds: d.Chance(3), Params: d.params(true)})
	steps, all := size.steps, 0
	if d.many {
		d.world()
		if d.h.slow() {
			steps /= 3
		}
	}
	weights := make([]int, len(draws))
	for i, w := range draws {
		weights[i] = w.few
		if d.many {
			weights[i] = w.many
		}
		all += weights[i]
	}
	for range steps {
		at, i := d.IntN(all), 0
		for ; at >= weights[i]; i++ {
			at -= weights[i]
		}
		draws[i].draw(d)
	}
	d.checkState()
	if !d.many && d.Chance(3) {
		d.copy()
	}
}

// world loads many entities, and at random merges all of them.
func (d *historyDrawer) world() {
	blocks, ahead := make([]entity.Block, worldBlocks), d.model.Clone()
	for i := range blocks {
		b := d.Block(ahead)
		b.Ops = nil
		d.Fill(ahead, &b, 2*d.Many/worldBlocks+1)
		if err := ahead.Apply(b); err != nil {
			d.t.Fatal(err)
		}
		blocks[i] = b
	}
	d.do(step{Do: "load", Blocks: blocks})
	if d.Chance(2) {
		d.do(step{Do: "flush"})
	}
}

// params draws URL parameters that must not affect results. For a new store the
// page size is one of them.
func (d *historyDrawer) params(create bool) map[string]string {
	list := map[string]string{}
	memory := []string{"256MiB", "64MiB"}
	if d.accepts("page_size") {
		memory = []string{"256MiB", "64KiB", "1MiB"} // page caches may be empty
		list["mmap"] = model.One(d.Drawer, "0", "65536", "100000000")
		if create && !d.many {
			list["page_size"] = model.One(d.Drawer, "4096", "512", "1024", "65536")
		}
	}
	if d.many {
		memory = memory[:1]
	}
	list["memory"] = model.One(d.Drawer, memory...)
	if d.accepts("checkpoint") {
		list["checkpoint"] = string(model.One(d.Drawer, driver.Background, driver.Inline, driver.Manual))
		list["checkpoint_frames"] = model.One(d.Drawer, logFramesLong, "1", "20")
	}
	if schemas.HasRuns(d.h.layout) {
		// With 1 and 3, steps meet every state of a merge. With 100000 nothing
		// is merged.
		backlog := []string{"3", "1", "3", "1", "20", "100000"}
		switch {
		case d.many && d.h.slow():
			backlog = []string{"1000"}
		case d.many:
			backlog = []string{"1000", "40", "100000"}
		}
		list["backlog"] = model.One(d.Drawer, backlog...)
	}
	return list
}

func (d *historyDrawer) reopen() {
	s := step{Do: "open", Params: d.params(false)}
	if d.Chance(2) {
		s.Layout = d.h.layout
	}
	d.do(s)
}

func (d *historyDrawer) apply() {
	d.do(step{Do: "apply", Blocks: []entity.Block{d.Block(d.model)}})
}

func (d *historyDrawer) load() {
	s := step{
		Do: "load", Held: d.IntN(len(d.fed) + 1), Changes: model.One(d.Drawer, 1+d.IntN(8), 1<<20),
		End: model.One(d.Drawer, "", "", "broken", "cancelled"),
	}
	ahead := d.model.Clone()
	for range 1 + d.IntN(4) {
		b := d.Block(ahead)
		_ = ahead.Apply(b) // a refused block ends the load
		s.Blocks = append(s.Blocks, b)
	}
	if s.End == "cancelled" {
		s.Given = d.IntN(s.Held + len(s.Blocks) + 1)
	}
	d.do(s)
}

func (d *historyDrawer) refuse() {
	if len(d.fed) == 0 || d.model.Horizon() > 0 {
		return
	}
	s := step{Do: "refuse", Cut: d.IntN(len(d.fed)), Held: d.IntN(len(d.fed) + 1)}
	if d.Chance(2) {
		at := len(d.fed) - 1 - s.Cut
		before, low := d.before(at)
		other := entity.Block{Number: low + d.Uint64N(d.fed[at].Number-low+1)}
		d.Fill(before, &other, d.IntN(4))
		s.Blocks = []entity.Block{other}
	}
	d.do(s)
}

func (d *historyDrawer) rewind() { d.do(step{Do: "rewind", At: d.At(d.model)}) }

func (d *historyDrawer) prune() { d.do(step{Do: "prune", At: d.At(d.model)}) }

func (d *historyDrawer) header() { d.do(step{Do: "header", At: d.At(d.model)}) }

// maintain at random merges and checkpoints, and verifies the store.
func (d *historyDrawer) maintain() {
	if d.Chance(2) {
		d.do(step{Do: "flush"})
	}
	if d.Chance(2) {
		d.do(step{Do: "checkpoint", Truncate: d.Chance(2)})
	}
	d.do(step{Do: "verify"})
}

func (d *historyDrawer) get() {
	s := step{Do: "get", At: d.At(d.model)}
	for range 3 {
		s.Keys = append(s.Keys, model.One(d.Drawer, d.Keys...))
	}
	d.do(s)
}

// questions draws questions about a block; none if the block cannot be read.
func (d *historyDrawer) questions(at uint64, n int) (list []model.Question) {
	of, err := d.model.At(at)
	for range n {
		if err == nil {
			list = append(list, d.Question(of))
		}
	}
	return list
}

func (d *historyDrawer) ask() {
	at := d.At(d.model)
	d.do(step{Do: "ask", At: at, Questions: d.questions(at, 3)})
}

// page reads a result page by page while the head moves.
func (d *historyDrawer) page() {
	at := d.At(d.model)
	d.do(step{Do: "page", At: at, Questions: d.questions(at, 1)})
	for d.paging != nil {
		if !d.model.HeadOnly && d.Chance(2) {
			model.One(d.Drawer, d.apply, d.apply, d.apply, d.rewind, d.prune)()
			at = store.Head
		}
		d.do(step{Do: "next", At: at})
	}
}

func (d *historyDrawer) changes() {
	from := d.At(d.model)
	d.do(step{Do: "changes", At: from, To: min(from, d.model.Head().Number+1) + d.Uint64N(8)})
}

// hold keeps a view open while blocks are applied and rewound.
func (d *historyDrawer) hold() {
	at := d.At(d.model)
	questions := d.questions(at, 1)
	d.do(step{Do: "hold", At: at})
	for range 1 + d.IntN(3) {
		model.One(d.Drawer, d.apply, d.load, d.rewind, d.prune)()
	}
	d.do(step{Do: "release", Questions: questions})
}

// copy continues with a copy of the store. A copy by history may have another
// layout.
func (d *historyDrawer) copy() {
	s := step{Do: "copy", Way: model.One(d.Drawer, "history", "backup"), Layout: d.h.layout}
	switch {
	case s.Way == "backup":
	case d.db.Engine().Capabilities().Spreads: // which does not have all layouts
		s.Layout = model.One(d.Drawer, d.h.layouts()...)
	default:
		s.Layout = model.One(d.Drawer, schemas.EntityLayouts()...)
	}
	s.Params = d.params(true)
	d.do(s)
	for range 3 {
		d.get()
		d.ask()
		d.apply()
	}
	d.do(step{Do: "verify"})
}
