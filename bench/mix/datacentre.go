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

// DataCentreOptions say what the reads of a data centre ask. The zero value is
// the seed's mix with all keys of every answer.
type DataCentreOptions struct {
	Weights dcseed.Weights // zero means dcseed.SeedWeights

	// Limit is how many of the newest a question for a whole list asks for: the
	// nodes of a data centre, its available GPU nodes, its pending workloads.
	// 0 means all, of a full data centre 100,000, 17,500 and 75,000.
	Limit int

	// Count asks these questions for the number alone.
	Count bool

	// Head is the last block that the store holds.
	Head uint64
}

// NewDataCentre returns the reads of the data centres of a model, by default
// with the seed's weights: nodes of a data centre 25 %, available GPU nodes 20,
// workloads on a node 20, the ten cheapest nodes for a workload 20, a node as it
// was at a past block with its payload 15. All but the last are asked at the
// head and fetch metadata alone. What a store holds beside the data centres does
// not matter.
func NewDataCentre(m *dcseed.Model, o DataCentreOptions) Reads {
	if o.Weights == (dcseed.Weights{}) {
		o.Weights = dcseed.SeedWeights
	}
	dc := &dataCentre{model: m, oracle: dcseed.NewOracle(m), opts: o, lists: map[listKey]list{}}
	dc.head.Store(o.Head)
	return dc
}

type dataCentre struct {
	model  *dcseed.Model
	oracle *dcseed.Oracle
	opts   DataCentreOptions
	head   atomic.Uint64

	mu    sync.Mutex
	lists map[listKey]list // the last answers that take long to find
}

type listKey struct {
	kind  dcseed.Kind
	dc    int
	limit int
}

type list struct {
	block uint64
	keys  []entity.Key
}

// Name implements Reads.
func (d *dataCentre) Name() string { return DataCentre }

// Kinds implements Reads.
func (d *dataCentre) Kinds() []Share {
	var shares []Share
	sum := uint64(0)
	for _, w := range d.opts.Weights {
		sum += w
	}
	for k, w := range d.opts.Weights {
		if w > 0 {
			shares = append(shares, Share{dcseed.Kind(k).String(), int((100*w + sum/2) / sum)})
		}
	}
	return shares
}

// Advance implements Reads. The model knows the blocks.
func (d *dataCentre) Advance(b *entity.Block) error {
	d.head.Store(b.Number)
	return nil
}

// Head implements Reads.
func (d *dataCentre) Head() uint64 { return d.head.Load() }

// Stream implements Reads.
func (d *dataCentre) Stream(o StreamOptions) *Stream {
	head := d.Head()
	return newStream(DataCentre, o, func(r *rand.Rand) Op {
		if o.Head != nil {
			head = o.Head()
		}
		for q := range d.model.Reads(r.Uint64(), d.opts.Weights, func() uint64 { return head }) {
			return d.op(q, o.HeadOnly)
		}
		panic("mix: a stream of reads without end has ended")
	})
}

// kindCurrent is what a read of a node at a past block becomes where there is
// no past.
const kindCurrent = "node-current"

func (d *dataCentre) op(q dcseed.Query, headOnly bool) Op {
	op := Op{Kind: q.Kind.String(), Block: store.Head}
	if q.Kind == dcseed.NodeState {
		op.Get, op.Key, op.Block = true, q.Key(), q.Block
		if headOnly {
			op.Kind, op.Block = kindCurrent, store.Head
		}
	} else if whole(q.Kind) {
		q.Limit, q.CountOnly = d.opts.Limit, d.opts.Count
	}
	op.dc, op.Expr, op.Limit, op.Count, op.Parts = q, q.Expr, q.Limit, q.CountOnly, store.Metadata
	if q.OrderBy != "" {
		op.Order = store.Order{Name: q.OrderBy, Kind: entity.Numeric}
	}
	return op
}

// whole tells whether a question asks for a whole list.
func whole(k dcseed.Kind) bool {
	return k == dcseed.NodesInDC || k == dcseed.AvailableGPUNodes || k == dcseed.PendingWorkloads
}

// Check implements Reads.
func (d *dataCentre) Check(op Op, a Answer) error {
	q := op.dc.At(a.Block)
	if whole(q.Kind) && !q.CountOnly && slices.Equal(a.Keys, d.list(q)) {
		return nil
	}
	return d.oracle.Verify(q, dcseed.Answer{Count: a.Count, Keys: a.Keys, Entity: a.Entity})
}

// list returns the answer to a question for a whole list, which is remembered
// until the block changes.
func (d *dataCentre) list(q dcseed.Query) []entity.Key {
	key := listKey{q.Kind, q.DC, q.Limit}
	d.mu.Lock()
	known, ok := d.lists[key]
	d.mu.Unlock()
	if ok && known.block == q.Block {
		return known.keys
	}
	known = list{q.Block, d.oracle.Expected(q).Keys}
	d.mu.Lock()
	d.lists[key] = known
	d.mu.Unlock()
	return known.keys
}
