package node

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// An application marks its entities, which are few among those of a chain, and asks all
// sorts of questions about them.
const (
	appEntities  = 240
	appAttribute = "project"
	appName      = "node-load"
	appEvery     = 4 // blocks in which it changes something
	appOps       = 3
	appStates    = 64 // blocks of which the state is held for the next question
)

// app is an application and the answers to its questions.
type app struct {
	r      *rand.Rand
	owners []store.Address
	keys   []store.Key
	mine   map[store.Key]bool // these

	mu     sync.Mutex
	model  model.Model
	states map[uint64][]*store.Entity // what is visible at a block
	first  uint64                     // block
}

func newApp(seed uint64) *app {
	a := &app{r: rand.New(rand.NewPCG(seed, appEntities)), mine: map[store.Key]bool{}, states: map[uint64][]*store.Entity{}}
	for i := range byte(5) {
		a.owners = append(a.owners, store.Address{0: 0xa0 + i, 19: i})
	}
	return a
}

// found returns the operations that create it, in a block.
func (a *app) found(block uint64) []store.Op {
	a.first = block
	list := a.draw(block, appEntities)
	// A transaction is of one sender.
	slices.SortStableFunc(list, func(x, y store.Op) int { return bytes.Compare(x.Owner[:], y.Owner[:]) })
	return list
}

// ops returns what it does in a block.
func (a *app) ops(block uint64) []store.Op {
	if block%appEvery != 0 {
		return nil
	}
	return a.draw(block, appOps)
}

func (a *app) draw(block uint64, n int) (list []store.Op) {
	a.mu.Lock()
	defer a.mu.Unlock()
	draft := a.model.Draft(block)
	for len(list) < n {
		op := model.Op(a.r, a.owners, a.keys, appEntities)
		if op.StringAttributes != nil {
			op.StringAttributes[appAttribute] = appName
		}
		if slices.ContainsFunc(list, func(o store.Op) bool { return o.Key == op.Key }) || draft.Add(&op) != nil {
			continue
		}
		if list = append(list, op); op.Kind == store.Create {
			a.keys, a.mine[op.Key] = append(a.keys, op.Key), true
		}
	}
	return list
}

// follow takes what a block does to the application's entities.
func (a *app) follow(b entity.Block) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	b.Ops = slices.DeleteFunc(slices.Clone(b.Ops), func(op entity.Op) bool { return !a.mine[op.Key] })
	if len(b.Ops) == 0 {
		return nil
	}
	return a.model.Apply(b)
}

// at returns its entities that are visible at a block.
func (a *app) at(block uint64) ([]*store.Entity, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if seen, ok := a.states[block]; ok {
		return seen, nil
	}
	snap, err := a.model.At(min(block, a.model.Head().Block))
	if err != nil {
		return nil, err
	}
	seen, err := snap.Query(nil, nil, 0, nil)
	if err != nil {
		return nil, err
	}
	// It may not have changed anything since, but entities run out.
	seen = slices.DeleteFunc(seen, func(e *store.Entity) bool { return e.Expiration <= block })
	if len(a.states) >= appStates {
		clear(a.states)
	}
	a.states[block] = seen
	return seen, nil
}

// answer returns what the answer to a question is at a block.
func (a *app) answer(q *asked, block uint64) ([]*store.Entity, error) {
	seen, err := a.at(block)
	if err != nil {
		return nil, err
	}
	list := make([]*store.Entity, 0, len(seen))
	for _, e := range seen {
		if query.Match(q.expr, e) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(x, y *store.Entity) int { return model.Compare(q.order, x, y) })
	return list, nil
}

// asked is a question of the application that is read page by page.
type asked struct {
	question
	expr   query.Expr
	want   []*store.Entity // of all pages; nil before the first one
	given  int             // of these, on pages that were read
	block  uint64          // that the pages are of
	repeat bool            // its pages can be read to the end
}

// ask draws a question at the head, or at a past block when there is one to ask for.
func (a *app) ask(r *rand.Rand, head uint64, temporal bool) (*asked, error) {
	q := &asked{question: question{at: store.Head, limit: model.Choose(r, []int{0, 10, 25, 50, 200}), fields: fields(r.IntN(int(withOpIndex) << 1))}, repeat: temporal}
	at := head
	if temporal && r.IntN(10) < 3 {
		at = a.first + r.Uint64N(head-a.first+1)
		q.at = at
	}
	seen, err := a.at(at)
	if err != nil {
		return nil, err
	}
	mine := query.Compare{Name: appAttribute, Op: query.Equal, Value: query.Text(appName)}
	q.expr = mine
	if r.IntN(8) > 0 {
		d := model.Drawer{Rand: r, Seen: seen}
		q.expr = query.And{Terms: []query.Expr{mine, d.Expr(1+model.Often(r, []int{0, 1, 2, 3, 5}), d.Someone())}}
	}
	q.text = q.expr.String()
	for range model.Choose(r, []int{0, 0, 1, 2, 3}) {
		by := model.Choose(r, model.Columns)
		by.Desc = r.IntN(2) == 0
		if !slices.ContainsFunc(q.order, func(o store.Order) bool { return o.Name == by.Name }) {
			q.order = append(q.order, by)
		}
	}
	return q, nil
}

// check compares a page with what is due, and prepares for the next one. It returns
// whether there is one.
func (q *asked) check(a *app, p *page) (more bool, err error) {
	if q.want == nil {
		q.block = p.block
		if q.want, err = a.answer(q, p.block); err != nil {
			return false, err
		}
	}
	if p.block != q.block {
		return false, fmt.Errorf("a page of block %d after one of block %d", p.block, q.block)
	}
	limit := q.limit
	if limit == 0 {
		limit = 200
	}
	due := q.want[q.given:min(q.given+limit, len(q.want))]
	if len(p.found) != len(due) {
		return false, fmt.Errorf("%d entities on a page from %d on, want %d of %d", len(p.found), q.given, len(due), len(q.want))
	}
	for i := range p.found {
		if wrong := p.found[i].differs(due[i], q.fields); wrong != "" {
			return false, fmt.Errorf("entity %d: %s", q.given+i, wrong)
		}
	}
	q.given += len(due)
	if more = p.cursor != ""; more != (len(due) == limit) { // a full page has one, also when nothing follows
		return false, fmt.Errorf("after %d of %d entities, on a page of %d, the cursor is %q", q.given, len(q.want), limit, p.cursor)
	}
	q.at, q.cursor = q.block, p.cursor
	return more && q.repeat, nil
}
