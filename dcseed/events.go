package dcseed

import (
	"crypto/sha256"
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

// event is an update of an entity by the load.
type event struct {
	typ      EventType
	old, new string // statuses; old is empty when the entity had expired
}

// event returns what an entity's turn, from 1, tells.
func (m *Model) event(r Ref, turn uint64) event {
	e := event{new: m.status(r, turn)}
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
