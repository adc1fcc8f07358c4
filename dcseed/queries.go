package dcseed

import (
	"fmt"
	"iter"

	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Kind is a kind of query with known answers.
type Kind uint8

// The kinds. All but the last one are queries for the matches of an expression.
const (
	NodesInDC         Kind = iota // all nodes of a data centre
	AvailableGPUNodes             // of a data centre, with vm_type "gpu" and not "gpu_large"
	WorkloadsOnNode               // assigned to a node
	NodeMatch                     // the cheapest available nodes that can run a workload
	NodeState                     // a node as it was at a past block

	kinds = iota
)

var kindNames = [kinds]string{
	"nodes-in-dc", "available-gpu-nodes", "workloads-on-node", "node-match", "node-state",
}

// String returns the kind's name in results, such as nodes-in-dc.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// MatchLimit is how many nodes a NodeMatch asks for.
const MatchLimit = 10

// Query is a query at a block. Models make queries; Block, Limit and Content
// may be changed before the query is run.
type Query struct {
	Kind Kind
	DC   int
	N    int // node of WorkloadsOnNode and NodeState, workload of NodeMatch; else 0

	// Expr is the query's expression. A NodeState's compares $key; getting the
	// entity by its key is equivalent.
	Expr query.Expr

	// OrderBy names the numeric attribute to sort by, ascending, newest creation
	// first among equals. Empty means newest creation first.
	OrderBy string

	Limit   int    // 0 means all
	Content bool   // of NodeState: the payload belongs to the answer
	Block   uint64 // at which to ask
}

// At returns the query at another block.
func (q Query) At(block uint64) Query {
	q.Block = block
	return q
}

// Key returns the key of the node that a NodeState asks for.
func (q Query) Key() entity.Key { return NodeRef(q.DC, q.N).Key() }

// String describes the query for messages.
func (q Query) String() string {
	subject := DCID(q.DC)
	switch q.Kind {
	case WorkloadsOnNode, NodeState:
		subject = NodeRef(q.DC, q.N).String()
	case NodeMatch:
		subject = WorkloadRef(q.DC, q.N).String()
	}
	return fmt.Sprintf("%s of %s at block %d", q.Kind, subject, q.Block)
}

func is(name, value string) query.Expr {
	return query.Compare{Name: name, Op: query.Equal, Value: query.Text(value)}
}

func atLeast(name string, n uint64) query.Expr {
	return query.Compare{Name: name, Op: query.GreaterOrEqual, Value: query.Number(n)}
}

func all(terms ...query.Expr) query.Expr { return query.And{Terms: terms} }

// NodesInDC asks for all nodes of a data centre.
func (m *Model) NodesInDC(dc int, block uint64) Query {
	return Query{Kind: NodesInDC, DC: dc, Block: block,
		Expr: all(is("dc_id", DCID(dc)), is("type", TypeNode))}
}

// AvailableGPUNodes asks for the nodes of a data centre that are available and
// of vm_type "gpu": about 17.5 % of them.
func (m *Model) AvailableGPUNodes(dc int, block uint64) Query {
	return Query{Kind: AvailableGPUNodes, DC: dc, Block: block,
		Expr: all(is("dc_id", DCID(dc)), is("status", StatusAvailable), is("vm_type", VMTypeGPU))}
}

// WorkloadsOnNode asks for the workloads assigned to a node.
func (m *Model) WorkloadsOnNode(dc, node int, block uint64) Query {
	return Query{Kind: WorkloadsOnNode, DC: dc, N: node, Block: block,
		Expr: is("assigned_node", NodeRef(dc, node).String())}
}

// NodeMatch asks for the MatchLimit cheapest nodes of a workload's data centre
// that are available, in a region that the workload accepts, of its vm_type,
// with at least its processors, memory and hours.
func (m *Model) NodeMatch(dc, workload int, block uint64) Query {
	var w entity.Op
	m.describe(&w, WorkloadRef(dc, workload), 0)
	return Query{Kind: NodeMatch, DC: dc, N: workload, Block: block, OrderBy: "price_hour", Limit: MatchLimit,
		Expr: all(
			is("dc_id", DCID(dc)), is("type", TypeNode), is("status", StatusAvailable),
			accepts(w.StringAttributes["region"]), is("vm_type", w.StringAttributes["vm_type"]),
			atLeast("cpu_count", w.NumericAttributes["req_cpu"]), atLeast("ram_gb", w.NumericAttributes["req_ram"]),
			atLeast("avail_hours", w.NumericAttributes["max_hours"]),
		)}
}

// accepts returns the condition on a node's region.
func accepts(region string) query.Expr {
	if region != RegionAny {
		return is("region", region)
	}
	in := query.In{Name: "region"}
	for _, c := range nodeRegions {
		in.Values = append(in.Values, query.Text(c.value))
	}
	return in
}

// NodeState asks for a node, payload included, as it was at a block.
func (m *Model) NodeState(dc, node int, block uint64) Query {
	return Query{Kind: NodeState, DC: dc, N: node, Block: block, Content: true,
		Expr: is(entity.AttrKey, NodeRef(dc, node).Key().String())}
}

// queryShares is how often the seed documents use each kind.
var queryShares = []choice[Kind]{{NodesInDC, 25}, {AvailableGPUNodes, 20}, {WorkloadsOnNode, 20}, {NodeMatch, 20}, {NodeState, 15}}

// Reads yields an endless stream of queries: kinds with the frequencies of the
// seed documents; data centre, node and workload uniformly distributed. The
// block is the result of head, which is called once for each query; for a
// NodeState it is uniform between the node's first block and that. The stream
// depends on its arguments alone. Concurrent readers should use separate
// streams with different seeds.
//
// The queries ask for all keys, up to 100,000 for the nodes of a data centre;
// set Limit to measure shorter answers.
func (m *Model) Reads(seed uint64, head func() uint64) iter.Seq[Query] {
	return func(yield func(Query) bool) {
		for i := uint64(0); yield(m.read(splitmix.Mix(seed)+i*splitmix.Step, head())); i++ {
		}
	}
}

func (m *Model) read(seed uint64, head uint64) Query {
	// This seed must not correlate with the data of the same seed.
	s := source(splitmix.Mix(seed ^ 0x7265616473))
	dc := int(splitmix.Below(s.draw(1, 0), uint64(m.cfg.DCs))) + 1
	node := int(splitmix.Below(s.draw(2, 0), m.nodes.perDC)) + 1
	switch draw(queryShares, s.draw(3, 0)) {
	case NodesInDC:
		return m.NodesInDC(dc, head)
	case AvailableGPUNodes:
		return m.AvailableGPUNodes(dc, head)
	case WorkloadsOnNode:
		return m.WorkloadsOnNode(dc, node, head)
	case NodeMatch:
		return m.NodeMatch(dc, int(splitmix.Below(s.draw(2, 1), m.workloads.perDC))+1, head)
	default:
		block, first := head, m.creation(NodeRef(dc, node)).block
		if first < head {
			block = first + splitmix.Below(s.draw(4, 0), head-first+1)
		}
		return m.NodeState(dc, node, block)
	}
}
