package eventlog

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

var eventsTable = &driver.Table{Name: "events", Columns: []driver.Column{
	{Name: "position", Type: driver.Int}, {Name: "type", Type: driver.Text}, {Name: "time", Type: driver.Int},
	{Name: "id", Type: driver.Blob}, {Name: "tags", Type: driver.Text}, {Name: "data", Type: driver.Blob},
	{Name: "metadata", Type: driver.Blob},
}}

// insert writes events that the tail has given positions.
func (l *Log) insert(ctx context.Context, tx driver.Tx, entries []entry, micros int64) error {
	rows := make([]any, 0, len(entries)*len(eventsTable.Columns))
	for i := range entries {
		r := entries[i].record
		e := r.Event
		at, when, id, tags, data := position(entries[i].position), cmp.Or(r.Micros, micros), storedID(e), r.tagList(), e.Data
		if data == nil {
			data = nothing // not NULL
		}
		sum := rowSum(at, when, []byte(e.Type), id, []byte(tags), data, e.Metadata)
		rows = append(rows, at, e.Type, when, id, tags, data, withSum(e.Metadata, sum))
	}
	return tx.Insert(ctx, eventsTable, rows)
}

var nothing = []byte{}

// storedID returns the ID of an event as it is stored: empty if there is none.
func storedID(e *event.Event) []byte {
	if e.ID.IsZero() {
		return nothing
	}
	return e.ID[:]
}

// Positions returns the positions of the stored events with some IDs.
func (l *Log) Positions(ctx context.Context, q driver.Querier, ids []event.ID) (map[event.ID]uint64, error) {
	list := make([]any, len(ids))
	for i := range ids {
		list[i] = ids[i][:]
	}
	found := map[event.ID]uint64{}
	return found, l.sql.EachIn(ctx, q, "find_ids", list, nil, func(rows driver.Rows) error {
		var id []byte
		var at int64
		err := rows.Scan(&id, &at)
		if err == nil && len(id) == len(event.ID{}) {
			found[event.ID(id)] = uint64(at)
		}
		return err
	})
}

// Engines that keep no checksums of pages return a damaged event as if it were
// whole. So the stored metadata ends with four bytes, a CRC-32C over everything
// that the row says, and every read compares it.
const sumBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// withSum returns a copy of metadata with the row's checksum behind it.
func withSum(metadata []byte, sum uint32) []byte {
	return binary.LittleEndian.AppendUint32(append(make([]byte, 0, len(metadata)+sumBytes), metadata...), sum)
}

// rowSum is the checksum of a row. It covers the lengths of the parts as well, so
// that bytes cannot move from one part to the next unnoticed.
func rowSum(position, micros int64, parts ...[]byte) uint32 {
	var head [16 + 5*binary.MaxVarintLen64]byte
	binary.LittleEndian.PutUint64(head[:], uint64(position))
	binary.LittleEndian.PutUint64(head[8:], uint64(micros))
	n := 16
	for _, p := range parts {
		n += binary.PutUvarint(head[n:], uint64(len(p)))
	}
	sum := crc32.Update(0, castagnoli, head[:n])
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

// checkSum compares the row that was scanned with its checksum, which it takes
// off the metadata.
func (r *row) checkSum() error {
	e := &r.event
	n := len(e.Metadata) - sumBytes
	if n < 0 {
		return fmt.Errorf("event %d: %w: its checksum is missing", r.position, driver.ErrCorrupt)
	}
	stored := binary.LittleEndian.Uint32(e.Metadata[n:])
	e.Metadata = e.Metadata[:n:n]
	switch sum := rowSum(r.position, r.time, r.typ, r.id, r.tags, e.Data, e.Metadata); {
	case sum == stored:
	case sum^truncatedMark == stored && len(e.Data) == 0:
		r.gone, r.digest, e.Metadata = true, e.Metadata, nil
	default:
		return fmt.Errorf("event %d: %w: its checksum is %08x, stored is %08x", r.position, driver.ErrCorrupt, sum, stored)
	}
	return nil
}
