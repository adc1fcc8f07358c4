package eventlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// Engines that keep no checksums of pages return a damaged event as if it were
// whole. So the stored metadata ends with four bytes, a CRC-32C over everything
// that the row says, and every read compares it.
const sumBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealed returns the metadata of an event as it is stored.
func sealed(e *event.Event, position, micros int64, tags string) []byte {
	buf := make([]byte, 0, len(e.Metadata)+sumBytes)
	buf = append(buf, e.Metadata...)
	var id []byte
	if !e.ID.IsZero() {
		id = e.ID[:]
	}
	return binary.LittleEndian.AppendUint32(buf, rowSum(position, micros, []byte(e.Type), id, []byte(tags), e.Data, e.Metadata))
}

// rowSum is the checksum of a row. Lengths keep apart what stands side by side.
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

// unseal checks the row that was scanned and takes the checksum off its metadata.
func (r *row) unseal() error {
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
