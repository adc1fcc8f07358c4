package service

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/store/event"
)

// sealEvents returns events whose data contain data and metadata, sealed
// together under a key. Type and tags stay readable, because queries and
// conditions need them.
//
// Sealed content is bound to the event's ID, type and tags (in any order), but
// not to its position, which is only assigned later. So an attacker with write
// access to the store can swap the contents of events with the same ID, type
// and tags.
//
// The store compares a repeated event with the stored one, so an event with an
// ID is sealed to the same bytes every time. The alternative, comparing
// decrypted contents, would make the store decrypt under the writer's lock. An
// event without an ID is never compared and has a random nonce.
func (s *Service) sealEvents(keys *seal.Keyring, id seal.ID, events []event.Event) []event.Event {
	sealed := make([]event.Event, len(events))
	for i := range events {
		e := &events[i]
		s.metrics.sealed.Inc()
		payload := make([]byte, 0, binary.MaxVarintLen64+len(e.Data)+len(e.Metadata))
		payload = binary.AppendUvarint(payload, uint64(len(e.Data)))
		payload = append(append(payload, e.Data...), e.Metadata...)
		sealed[i] = event.Event{Type: e.Type, Tags: e.Tags, ID: e.ID}
		if e.ID.IsZero() {
			sealed[i].Data = keys.Seal(eventOwner(e), payload)
		} else {
			sealed[i].Data = keys.SealAlike(id, eventOwner(e), payload)
		}
	}
	return sealed
}

// sealedSize is the size of an event's data after sealing.
func sealedSize(e *event.Event) int {
	return seal.Overhead + len(binary.AppendUvarint(nil, uint64(len(e.Data)))) + len(e.Data) + len(e.Metadata)
}

// unsealEvent decrypts a stored event in place. As with entities, the keyring
// decides whether an event must be sealed, not the stored bytes.
func unsealEvent(keys *seal.Keyring, e *event.Event) error {
	if keys == nil {
		if seal.IsSealed(e.Data) {
			return fmt.Errorf("%w: the service was started without keys", seal.ErrUnknownKey)
		}
		return nil
	}
	if len(e.Metadata) > 0 {
		return fmt.Errorf("%w: it has metadata in the clear", seal.ErrNotSealed)
	}
	payload, err := keys.Open(eventOwner(e), e.Data)
	if err != nil {
		return err
	}
	size, n := binary.Uvarint(payload)
	if n <= 0 || size > uint64(len(payload)-n) {
		return seal.ErrTampered // only a holder of the key can have made it
	}
	e.Data, e.Metadata = payload[n:n+int(size):n+int(size)], payload[n+int(size):]
	return nil
}

// eventOwner is the value that an event's content is bound to. Its length
// differs from an entity key's, so that the two cannot be confused.
func eventOwner(e *event.Event) []byte {
	tags := slices.Clone(e.Tags)
	slices.SortFunc(tags, func(a, b event.Tag) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value))
	})
	parts := []string{e.Type}
	for _, t := range tags {
		parts = append(parts, t.Key, t.Value)
	}
	text := slices.Clone(e.ID[:])
	for _, part := range parts {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(text)
	return append([]byte("event\x00"), sum[:]...)
}
