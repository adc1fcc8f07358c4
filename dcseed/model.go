package dcseed

import (
	"fmt"

	"github.com/varvedb/varve/store/entity"
)

// ContentType is the content type of nodes and workloads.
const ContentType = "application/octet-stream"

// Model answers for one configuration. It is small, never changes, and is safe
// for concurrent use.
type Model struct {
	cfg              Config // with defaults
	nodes, workloads population
	firstLoad        uint64 // block
	dcIDs            []string
	operators        []entity.Address
}

// New returns the model of a configuration. The error names the field that is
// out of its range.
func New(cfg Config) (*Model, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	m := &Model{
		cfg:       cfg,
		nodes:     newPopulation(ClassNode, cfg.Seed, cfg.DCs, cfg.NodesPerDC, cfg.NodeUpdates, 0),
		workloads: newPopulation(ClassWorkload, cfg.Seed, cfg.DCs, cfg.WorkloadsPerDC, cfg.WorkloadUpdates, cfg.NodeUpdates),
	}
	perBlock := uint64(cfg.PerBlock)
	m.firstLoad = cfg.FirstBlock + (m.Entities()+perBlock-1)/perBlock
	if m.firstLoad > entity.MaxBlockNumber {
		return nil, fmt.Errorf("data centre config: the initial state ends at block %d, above the highest block number %d",
			m.firstLoad-1, uint64(entity.MaxBlockNumber))
	}
	for dc := range cfg.DCs {
		m.dcIDs = append(m.dcIDs, DCID(dc+1))
		m.operators = append(m.operators, Operator(dc+1))
	}
	return m, nil
}

// Config returns the configuration with its defaults filled in; what is none is
// 0 there. It describes the model and is not meant for New.
func (m *Model) Config() Config { return m.cfg }

// Entities returns the number of nodes and workloads of all data centres.
func (m *Model) Entities() uint64 { return m.nodes.count + m.workloads.count }

// FirstLoadBlock returns the number of the block after the initial state.
func (m *Model) FirstLoadBlock() uint64 { return m.firstLoad }

func (m *Model) population(c Class) *population {
	if c == ClassNode {
		return &m.nodes
	}
	return &m.workloads
}

func (m *Model) source(r Ref) source { return newSource(m.cfg.Seed, r.Class, r.DC, r.N) }

// Node is a machine of a data centre.
type Node struct {
	DC, N      int
	ID         string
	Key        entity.Key
	Owner      entity.Address
	Region     string
	Status     string
	VMType     string
	CPUCount   uint64
	RAMGB      uint64
	PriceHour  uint64 // cents
	AvailHours uint64
}

// Workload is a job of a data centre.
type Workload struct {
	DC, N        int
	ID           string
	Key          entity.Key
	Owner        entity.Address
	Status       string
	AssignedNode string // identifier
	Region       string // or RegionAny
	VMType       string
	ReqCPU       uint64
	ReqRAM       uint64 // GB
	MaxHours     uint64
}

// Node returns a node as it is created; all but Status stays so for ever. The
// caller guarantees that the model has it.
func (m *Model) Node(dc, n int) Node { return m.node(NodeRef(dc, n), 0) }

// Workload returns a workload as it is created; all but Status stays so for
// ever. The caller guarantees that the model has it.
func (m *Model) Workload(dc, w int) Workload { return m.workload(WorkloadRef(dc, w), 0) }

// NodeOf returns the number of the node that workload w is assigned to, in the
// same data centre.
func (m *Model) NodeOf(w int) int { return (w-1)%m.cfg.NodesPerDC + 1 }

func (m *Model) node(r Ref, turn uint64) Node {
	s := m.source(r)
	return Node{
		DC: r.DC, N: r.N, ID: r.ID(), Key: r.Key(), Owner: m.operators[r.DC-1],
		Region:     draw(nodeRegions, s.draw(fieldRegion, 0)),
		Status:     draw(nodeStatuses, s.draw(fieldStatus, turn)),
		VMType:     draw(vmTypes, s.draw(fieldVMType, 0)),
		CPUCount:   draw(cpuCounts, s.draw(fieldCPU, 0)),
		RAMGB:      draw(ramSizes, s.draw(fieldRAM, 0)),
		PriceHour:  s.price(),
		AvailHours: draw(availHours, s.draw(fieldHours, 0)),
	}
}

func (s source) price() uint64 {
	return MinPrice + below(s.draw(fieldPrice, 0), MaxPrice-MinPrice+1)
}

func (m *Model) workload(r Ref, turn uint64) Workload {
	s := m.source(r)
	return Workload{
		DC: r.DC, N: r.N, ID: r.ID(), Key: r.Key(), Owner: Tenant(s.tenant()),
		Status:       draw(workloadStatuses, s.draw(fieldStatus, turn)),
		AssignedNode: NodeRef(r.DC, m.NodeOf(r.N)).ID(),
		Region:       draw(workloadRegions, s.draw(fieldRegion, 0)),
		VMType:       draw(vmTypes, s.draw(fieldVMType, 0)),
		ReqCPU:       draw(reqCPUs, s.draw(fieldCPU, 0)),
		ReqRAM:       draw(reqRAMs, s.draw(fieldRAM, 0)),
		MaxHours:     draw(maxHours, s.draw(fieldHours, 0)),
	}
}

// status returns the status that a turn gives an entity.
func (m *Model) status(r Ref, turn uint64) string {
	statuses := nodeStatuses
	if r.Class == ClassWorkload {
		statuses = workloadStatuses
	}
	return draw(statuses, m.source(r).draw(fieldStatus, turn))
}

// EntityAt returns an entity at a block as a store must return it, content and
// metadata included, and false when it is not visible there. Its time grows
// with the number of turns since the entity was last created. The caller owns
// the result, and guarantees that the model has the entity.
func (m *Model) EntityAt(r Ref, block uint64) (*entity.Entity, bool) {
	v, ok := m.versionAt(r, block)
	if !ok {
		return nil, false
	}
	op := m.operation(r, v.turn)
	return &entity.Entity{
		Key: op.Key, Creator: op.Owner, Owner: op.Owner,
		ContentType: op.ContentType, Content: op.Content,
		StringAttributes: op.StringAttributes, NumericAttributes: op.NumericAttributes,
		Sequence:            m.born(r, v.turn).sequence(),
		LastModifiedAtBlock: v.from,
		Expiration:          v.expires,
	}, true
}
