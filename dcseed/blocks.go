package dcseed

import (
	"fmt"
	"iter"

	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store/entity"
)

// Blocks streams the blocks of a range, both ends included, of the initial
// state and the load after it. To resume, begin with the block after the last
// stored one. It is an error if a range begins before FirstBlock or ends above
// entity.MaxBlockNumber; a range that ends before it begins is empty. It holds
// one block in memory, which belongs to the consumer.
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

// Block returns one block. It fails when there is no block of that number.
func (m *Model) Block(number uint64) (entity.Block, error) {
	if number < FirstBlock || number > entity.MaxBlockNumber {
		return entity.Block{}, fmt.Errorf("data centre block %d: want %d to %d",
			number, FirstBlock, uint64(entity.MaxBlockNumber))
	}
	b := entity.Block{Number: number}
	if number >= m.firstLoad {
		b.Ops = make([]entity.Op, 0, m.cfg.NodeUpdates+m.cfg.WorkloadUpdates)
		for r, revision := range m.revisions(number) {
			appendOp(&b, m.operation(r, revision))
		}
		return b, nil
	}
	// The initial state: data centre by data centre, nodes before workloads.
	perBlock := uint64(m.cfg.PerBlock)
	first := (number - FirstBlock) * perBlock
	last := min(first+perBlock, m.Entities())
	b.Ops = make([]entity.Op, 0, last-first)
	perDC := m.nodes.perDC + m.workloads.perDC
	for position := first; position < last; position++ {
		dc, n := int(position/perDC)+1, position%perDC
		r := NodeRef(dc, int(n)+1)
		if n >= m.nodes.perDC {
			r = WorkloadRef(dc, int(n-m.nodes.perDC)+1)
		}
		appendOp(&b, m.operation(r, 0))
	}
	return b, nil
}

// revisions yields the revisions in a load block in the order of its
// operations: nodes before workloads.
func (m *Model) revisions(block uint64) iter.Seq2[Ref, uint64] {
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

// appendOp appends an operation, numbered by its position in the block.
func appendOp(b *entity.Block, op entity.Op) {
	at := spot{b.Number, uint64(len(b.Ops))}
	op.TxIndex, op.OpIndex = at.tx(), at.op()
	b.Ops = append(b.Ops, op)
}

// operation returns the operation that makes a revision of an entity; revision
// 0 creates it.
func (m *Model) operation(r Ref, revision uint64) entity.Op {
	op := entity.Op{Kind: entity.Update, BTL: m.btl(r, revision), ContentType: ContentType}
	if revision == 0 || m.revives(r, revision) {
		op.Kind = entity.Create
	}
	op.Content = make([]byte, m.cfg.Payload)
	splitmix.Fill(op.Content, m.source(r).draw(fieldPayload, revision))
	m.describe(&op, r, revision)
	return op
}

// describe sets key, owner and attributes of an operation. Of the attributes
// only the status changes with the revision.
func (m *Model) describe(op *entity.Op, r Ref, revision uint64) {
	s := m.source(r)
	op.Key = r.Key()
	op.StringAttributes = map[string]string{
		"dc_id": m.dcIDs[r.DC-1], "status": m.status(r, revision), "vm_type": draw(vmTypes, s.draw(fieldVMType, 0)),
	}
	if r.Class == ClassNode {
		op.Owner = m.operators[r.DC-1]
		op.StringAttributes["type"], op.StringAttributes["node_id"] = TypeNode, r.String()
		op.StringAttributes["region"] = draw(nodeRegions, s.draw(fieldRegion, 0))
		op.NumericAttributes = map[string]uint64{
			"cpu_count": draw(cpuCounts, s.draw(fieldCPU, 0)), "ram_gb": draw(ramSizes, s.draw(fieldRAM, 0)),
			"price_hour": s.price(), "avail_hours": draw(availHours, s.draw(fieldHours, 0)),
		}
		return
	}
	op.Owner = Tenant(s.tenant())
	op.StringAttributes["type"], op.StringAttributes["workload_id"] = TypeWorkload, r.String()
	op.StringAttributes["assigned_node"] = NodeRef(r.DC, (r.N-1)%m.cfg.NodesPerDC+1).String()
	op.StringAttributes["region"] = draw(workloadRegions, s.draw(fieldRegion, 0))
	op.NumericAttributes = map[string]uint64{
		"req_cpu": draw(reqCPUs, s.draw(fieldCPU, 0)), "req_ram": draw(reqRAMs, s.draw(fieldRAM, 0)),
		"max_hours": draw(maxHours, s.draw(fieldHours, 0)),
	}
}

// price is in cents an hour.
func (s source) price() uint64 {
	return MinPrice + splitmix.Below(s.draw(fieldPrice, 0), MaxPrice-MinPrice+1)
}
