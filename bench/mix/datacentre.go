package mix

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// DataCentre is the name of the mix of NewDataCentre.
const DataCentre = "dc"

// NewDataCentre returns the reads of a data-centre model with Arkiv's weights:
// nodes of a data centre 25 %, available GPU nodes 20 %, workloads on a node 20
// %, the ten cheapest nodes for a workload 20 %, a node with its payload at a
// past block 15 %. All but the last read the head and fetch metadata only. The
// store may hold other entities as well.
//
// Head is the store's last block. A query for a whole list (the nodes of a data
// centre, or its available GPU nodes) returns the newest entries up to limit. A
// limit of 0 returns all: 100,000 and 17,500 of a full data centre.
func NewDataCentre(m *dcseed.Model, head uint64, limit int) Reads {
	dc := &dataCentre{model: m, oracle: dcseed.NewOracle(m), limit: limit, lists: map[dcseed.Query][]*dcseed.Listing{}}
	dc.head.Store(head)
	return dc
}

type dataCentre struct {
	model  *dcseed.Model
	oracle *dcseed.Oracle
	limit  int
	head   atomic.Uint64

	mu    sync.Mutex                         // held while an answer is computed, so that clients with the same query compute it once
	lists map[dcseed.Query][]*dcseed.Listing // the latest of each kind and data centre
}

// maxLists is how many listings are kept of each kind and data centre. Clients
// check answers of a few blocks at a time, not in their order.
const maxLists = 8

// Name implements Reads.
func (d *dataCentre) Name() string { return DataCentre }

// Advance implements Reads. It does nothing, because the model knows all
// blocks.
func (d *dataCentre) Advance(b *entity.Block) error {
	d.head.Store(b.Number)
	return nil
}

// Head implements Reads.
func (d *dataCentre) Head() uint64 { return d.head.Load() }

// Stream implements Reads.
func (d *dataCentre) Stream(o StreamOptions) Stream {
	head := d.Head()
	return func(r *rand.Rand) Op {
		if o.Head != nil {
			head = o.Head()
		}
		for q := range d.model.Reads(r.Uint64(), func() uint64 { return head }) {
			return d.op(q, o.HeadOnly)
		}
		panic("mix: a stream of reads without end has ended")
	}
}

// kindCurrent replaces a read of a node at a past block in layouts without
// history.
const kindCurrent = "node-current"

func (d *dataCentre) op(q dcseed.Query, headOnly bool) Op {
	op := Op{Kind: q.Kind.String(), Block: store.Head}
	if q.Kind == dcseed.NodeState {
		op.Get, op.Key, op.Block = true, q.Key(), q.Block
		if headOnly {
			op.Kind, op.Block = kindCurrent, store.Head
		}
	} else if wantsAll(q.Kind) {
		q.Limit = d.limit
	}
	op.dc, op.Expr, op.Limit, op.Parts = q, q.Expr, q.Limit, store.Metadata
	if q.OrderBy != "" {
		op.Order = []store.Order{{Name: q.OrderBy, Kind: entity.Numeric}}
	}
	return op
}

// wantsAll reports whether a query asks for a whole list.
func wantsAll(k dcseed.Kind) bool { return k == dcseed.NodesInDC || k == dcseed.AvailableGPUNodes }

// Check implements Reads.
func (d *dataCentre) Check(op Op, a Answer) error {
	q := op.dc.At(a.Block)
	if wantsAll(q.Kind) && slices.Equal(a.Keys, d.list(q)) {
		return nil
	}
	return d.oracle.Verify(q, dcseed.Answer{Keys: a.Keys, Entity: a.Entity})
}

// list returns the answer to a query for a whole list. It follows from the
// listing of the nearest block before, if one is kept.
func (d *dataCentre) list(q dcseed.Query) []entity.Key {
	key := dcseed.Query{Kind: q.Kind, DC: q.DC}
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := d.lists[key]
	var nearest *dcseed.Listing
	for _, l := range kept {
		if l.Block() <= q.Block && (nearest == nil || l.Block() > nearest.Block()) {
			nearest = l
		}
	}
	switch {
	case nearest == nil:
		nearest = d.oracle.List(q)
	case nearest.Block() == q.Block:
		return nearest.Keys()
	default:
		nearest = nearest.At(q.Block)
	}
	d.lists[key] = append(kept[max(0, len(kept)-maxLists+1):], nearest)
	return nearest.Keys()
}
