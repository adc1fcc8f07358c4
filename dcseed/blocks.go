package dcseed

import (
	"fmt"
	"iter"

	"github.com/varvedb/varve/store/entity"
)

// Initial streams the blocks that create all nodes and workloads. It holds one
// block in memory, which belongs to the consumer.
func (m *Model) Initial() iter.Seq2[entity.Block, error] {
	return m.Blocks(m.cfg.FirstBlock, m.firstLoad-1)
}

// Load streams a number of blocks of updates, from the first after the initial
// state on.
func (m *Model) Load(blocks uint64) iter.Seq2[entity.Block, error] {
	return m.Blocks(m.firstLoad, m.firstLoad+blocks-1)
}

// Blocks streams the blocks of a range, both ends included, of the initial state
// and the load after it. To resume, begin with the block after the last one
// stored. A range that begins before the first block or ends above
// entity.MaxBlockNumber is an error; one that ends before it begins is empty.
func (m *Model) Blocks(from, to uint64) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		for number := from; number <= to; number++ {
			b, err := m.Block(number)
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// Block returns one block. It fails when there is none of that number.
func (m *Model) Block(number uint64) (entity.Block, error) {
	if number < m.cfg.FirstBlock || number > entity.MaxBlockNumber {
		return entity.Block{}, fmt.Errorf("data centre block %d: want %d to %d",
			number, m.cfg.FirstBlock, uint64(entity.MaxBlockNumber))
	}
	if number < m.firstLoad {
		return m.initialBlock(number), nil
	}
	return m.loadBlock(number), nil
}

func (m *Model) initialBlock(number uint64) entity.Block {
	perBlock := uint64(m.cfg.PerBlock)
	first := (number - m.cfg.FirstBlock) * perBlock
	last := min(first+perBlock, m.Entities())
	b := entity.Block{Number: number, Ops: make([]entity.Op, 0, last-first)}
	perDC := m.nodes.perDC + m.workloads.perDC
	for position := first; position < last; position++ {
		dc, n := int(position/perDC)+1, position%perDC
		r := NodeRef(dc, int(n)+1)
		if n >= m.nodes.perDC {
			r = WorkloadRef(dc, int(n-m.nodes.perDC)+1)
		}
		appendOp(&b, m.operation(r, 0))
	}
	return b
}

func (m *Model) loadBlock(number uint64) entity.Block {
	b := entity.Block{Number: number, Ops: make([]entity.Op, 0, m.cfg.NodeUpdates+m.cfg.WorkloadUpdates)}
	for r, turn := range m.turns(number) {
		appendOp(&b, m.operation(r, turn))
	}
	return b
}

// turns yields the turns of a load block in the order of its operations: nodes
// before workloads.
func (m *Model) turns(block uint64) iter.Seq2[Ref, uint64] {
	return func(yield func(Ref, uint64) bool) {
		for _, p := range []*population{&m.nodes, &m.workloads} {
			first := (block - m.firstLoad) * p.updates
			for slot := first; slot < first+p.updates; slot++ {
				if !yield(p.ref(p.at(slot%p.count)), slot/p.count+1) {
					return
				}
			}
		}
	}
}

// appendOp numbers an operation by its place in the block.
func appendOp(b *entity.Block, op entity.Op) {
	at := spot{b.Number, uint64(len(b.Ops))}
	op.TxIndex, op.OpIndex = at.tx(), at.op()
	b.Ops = append(b.Ops, op)
}

// operation returns what a turn does to an entity; turn 0 creates it.
func (m *Model) operation(r Ref, turn uint64) entity.Op {
	op := entity.Op{Kind: entity.Update, BTL: m.btl(r, turn), ContentType: ContentType}
	if turn == 0 || m.revives(r, turn) {
		op.Kind = entity.Create
	}
	if m.cfg.Payload > 0 {
		op.Content = make([]byte, m.cfg.Payload)
		fill(op.Content, m.source(r).draw(fieldPayload, turn))
	}
	if r.Class == ClassNode {
		m.describeNode(&op, m.node(r, turn))
	} else {
		m.describeWorkload(&op, m.workload(r, turn))
	}
	return op
}

func (m *Model) describeNode(op *entity.Op, n Node) {
	op.Key, op.Owner = n.Key, n.Owner
	op.StringAttributes = map[string]string{
		"type": TypeNode, "dc_id": m.dcIDs[n.DC-1], "node_id": n.ID,
		"region": n.Region, "status": n.Status, "vm_type": n.VMType,
	}
	op.NumericAttributes = map[string]uint64{
		"cpu_count": n.CPUCount, "ram_gb": n.RAMGB, "price_hour": n.PriceHour, "avail_hours": n.AvailHours,
	}
}

func (m *Model) describeWorkload(op *entity.Op, w Workload) {
	op.Key, op.Owner = w.Key, w.Owner
	op.StringAttributes = map[string]string{
		"type": TypeWorkload, "dc_id": m.dcIDs[w.DC-1], "workload_id": w.ID,
		"status": w.Status, "assigned_node": w.AssignedNode, "region": w.Region, "vm_type": w.VMType,
	}
	op.NumericAttributes = map[string]uint64{
		"req_cpu": w.ReqCPU, "req_ram": w.ReqRAM, "max_hours": w.MaxHours,
	}
}
