package dcseed

import (
	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store/entity"
)

// ContentType is the content type of nodes and workloads.
const ContentType = "application/octet-stream"

// Model gives the data and answers for one configuration. It is small, never
// changes, and is safe for concurrent use.
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
		workloads: newPopulation(ClassWorkload, cfg.Seed, cfg.DCs, cfg.NodesPerDC*workloadsPerNode, cfg.WorkloadUpdates, cfg.NodeUpdates),
	}
	perBlock := uint64(cfg.PerBlock)
	m.firstLoad = FirstBlock + (m.Entities()+perBlock-1)/perBlock
	for dc := range cfg.DCs {
		m.dcIDs = append(m.dcIDs, DCID(dc+1))
		m.operators = append(m.operators, Operator(dc+1))
	}
	return m, nil
}

// Config returns the configuration with its defaults filled in.
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

func (m *Model) source(r Ref) source {
	return source(splitmix.Mix(splitmix.Mix(m.cfg.Seed+uint64(r.Class)*splitmix.Step) ^ uint64(r.DC)<<32 ^ uint64(r.N)))
}

// status returns the status of an entity in a revision.
func (m *Model) status(r Ref, revision uint64) string {
	statuses := nodeStatuses
	if r.Class == ClassWorkload {
		statuses = workloadStatuses
	}
	return draw(statuses, m.source(r).draw(fieldStatus, revision))
}

// EntityAt returns an entity at a block as a store must return it, including
// content and metadata, and false when it is not visible there. Its time grows
// with the number of revisions since the entity was last created. The model
// must have the entity. The caller owns the result.
func (m *Model) EntityAt(r Ref, block uint64) (*entity.Entity, bool) {
	v, ok := m.versionAt(r, block)
	if !ok {
		return nil, false
	}
	op := m.operation(r, v.revision)
	return &entity.Entity{
		Key: op.Key, Creator: op.Owner, Owner: op.Owner,
		ContentType: op.ContentType, Content: op.Content,
		StringAttributes: op.StringAttributes, NumericAttributes: op.NumericAttributes,
		Sequence:            m.born(r, v.revision).sequence(),
		LastModifiedAtBlock: v.from,
		Expiration:          v.expires,
	}, true
}
