package dcseed

import (
	"crypto/sha256"
	"iter"
	"strconv"

	"github.com/varvedb/varve/store/entity"
)

// EventType is what happened to an entity.
type EventType string

// The event types.
const (
	EventStatus    EventType = "status"    // the status changed
	EventHeartbeat EventType = "heartbeat" // the status was confirmed
	EventCreated   EventType = "created"   // it had expired and came back
)

// NodeEvent is an update of a node by the load.
type NodeEvent struct {
	NodeID    string
	DC, Node  int
	Type      EventType
	OldStatus string // empty when the node had expired
	NewStatus string
	Block     uint64
}

// WorkloadEvent is an update of a workload by the load.
type WorkloadEvent struct {
	WorkloadID   string
	DC, Workload int
	Type         EventType
	OldStatus    string // empty when the workload had expired
	NewStatus    string
	Block        uint64
}

// NodeEvents yields the events of the nodes at a block, in the order of the
// block's operations. Blocks of the initial state have none.
func (m *Model) NodeEvents(block uint64) iter.Seq[NodeEvent] {
	return func(yield func(NodeEvent) bool) {
		for e := range m.events(ClassNode, block) {
			if !yield(NodeEvent{e.ref.ID(), e.ref.DC, e.ref.N, e.typ, e.old, e.new, block}) {
				return
			}
		}
	}
}

// WorkloadEvents yields the events of the workloads at a block, in the order of
// the block's operations. Blocks of the initial state have none.
func (m *Model) WorkloadEvents(block uint64) iter.Seq[WorkloadEvent] {
	return func(yield func(WorkloadEvent) bool) {
		for e := range m.events(ClassWorkload, block) {
			if !yield(WorkloadEvent{e.ref.ID(), e.ref.DC, e.ref.N, e.typ, e.old, e.new, block}) {
				return
			}
		}
	}
}

// event is what NodeEvent and WorkloadEvent have in common.
type event struct {
	ref      Ref
	typ      EventType
	old, new string
}

func (m *Model) events(class Class, block uint64) iter.Seq[event] {
	return func(yield func(event) bool) {
		if block < m.firstLoad {
			return
		}
		for r, turn := range m.turns(block) {
			if r.Class == class && !yield(m.event(r, turn)) {
				return
			}
		}
	}
}

// event returns what an entity's turn, from 1, tells.
func (m *Model) event(r Ref, turn uint64) event {
	e := event{ref: r, new: m.status(r, turn)}
	if m.revives(r, turn) {
		e.typ = EventCreated
		return e
	}
	e.typ, e.old = EventStatus, m.status(r, turn-1)
	if e.old == e.new {
		e.typ = EventHeartbeat
	}
	return e
}

// EventKey returns the key of the entity that records an entity's turn, counted
// from 1: the SHA-256 of ev_, the entity's identifier, _ and the turn.
func EventKey(r Ref, turn uint64) entity.Key {
	id := append(r.appendID([]byte("ev_")), '_')
	return sha256.Sum256(strconv.AppendUint(id, turn, 10))
}

// eventOperation creates the entity that records a turn. It has no status
// attribute, so that queries for states do not see it, and no content.
func (m *Model) eventOperation(r Ref, turn uint64) entity.Op {
	e := m.event(r, turn)
	typ, idName, owner := TypeNodeEvent, "node_id", m.operators[r.DC-1]
	if r.Class == ClassWorkload {
		typ, idName, owner = TypeWorkloadEvent, "workload_id", Tenant(m.source(r).tenant())
	}
	return entity.Op{
		Kind: entity.Create, Key: EventKey(r, turn), Owner: owner, BTL: m.eventBTL(), ContentType: ContentType,
		StringAttributes: map[string]string{
			"type": typ, "dc_id": m.dcIDs[r.DC-1], idName: r.ID(),
			"event_type": string(e.typ), "old_status": e.old, "new_status": e.new,
		},
		NumericAttributes: map[string]uint64{"block": m.spot(r, turn).block},
	}
}

func (m *Model) eventBTL() uint64 {
	if m.cfg.Endless {
		return entity.MaxBlock
	}
	return eventBTL
}

// countEvents returns how many recorded events are visible at a block.
func (m *Model) countEvents(block uint64) uint64 {
	if !m.cfg.RecordEvents || block < m.firstLoad {
		return 0
	}
	return min(block-m.firstLoad+1, m.eventBTL()) * (m.nodes.updates + m.workloads.updates)
}
