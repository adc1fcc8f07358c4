package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// BlockHeader identifies a block of a store, by default the head, and has the digest of the
// history up to it.
type BlockHeader struct {
	Number uint64        `json:"block"`           // 0 when Empty
	Digest entity.Digest `json:"digest"`          // zero when Empty
	Hash   entity.Hash   `json:"hash,omitzero"`   // of the block in its chain; zero when unknown
	Time   uint64        `json:"time,omitempty"`  // of the block, seconds since 1970; zero when unknown
	Empty  bool          `json:"empty,omitempty"` // no block was applied yet
}

// String describes the block for messages.
func (h BlockHeader) String() string {
	if h.Empty {
		return "no block"
	}
	return fmt.Sprintf("block %d", h.Number)
}

// identified reports whether the chain's hash or time of the block is known.
func (h BlockHeader) identified() bool { return h.Hash != (entity.Hash{}) || h.Time != 0 }

// The record of a block is its digest. If hash or time are known, they follow
// with a checksum over everything, because the digest does not cover them. It
// is one value and not three columns, so that older stores without hashes stay
// valid and need no other code.
const (
	recordHash = len(entity.Digest{})
	recordTime = recordHash + len(entity.Hash{})
	recordSum  = recordTime + 8
	recordLen  = recordSum + 4
)

func (h BlockHeader) record() []byte {
	if !h.identified() {
		return h.Digest[:]
	}
	b := append(make([]byte, 0, recordLen), h.Digest[:]...)
	b = append(b, h.Hash[:]...)
	b = binary.BigEndian.AppendUint64(b, h.Time)
	return append(b, h.sumOf(b)...)
}

// sumOf includes the block number, so that a record of another block is
// detected as damage.
func (h BlockHeader) sumOf(record []byte) []byte {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(record[:recordSum:recordSum], h.Number))
	return sum[:recordLen-recordSum]
}

// headFromRecord is the inverse of record.
func headFromRecord(block int64, record []byte) (h BlockHeader, err error) {
	h.Number = uint64(block)
	if len(record) == recordLen {
		if string(h.sumOf(record)) != string(record[recordSum:]) {
			return BlockHeader{}, fmt.Errorf("%w: block %d: hash and time are not what was recorded", ErrCorrupt, block)
		}
		h.Hash = entity.Hash(record[recordHash:recordTime])
		h.Time = binary.BigEndian.Uint64(record[recordTime:])
		record = record[:recordHash]
	}
	if h.Digest, err = entity.DigestFromBytes(record); err != nil {
		return BlockHeader{}, fmt.Errorf("%w: block %d: %w", ErrCorrupt, block, err)
	}
	return h, nil
}

func scanBlock(rows driver.Rows) (BlockHeader, error) {
	var block int64
	var record []byte
	if err := rows.Scan(&block, &record); err != nil {
		return BlockHeader{}, err
	}
	return headFromRecord(block, record)
}

// blockRows reads recorded blocks, one ahead.
type blockRows struct {
	rows  driver.Rows
	block BlockHeader
	more  bool // block is the next one
}

// blockRows runs a statement that selects blocks in order.
func (m meta) blockRows(ctx context.Context, q driver.Querier, name string, args ...any) (*blockRows, error) {
	rows, err := m.Query(ctx, q, name, args...)
	if err != nil {
		return nil, err
	}
	b := &blockRows{rows: rows}
	if err := b.next(); err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	return b, nil
}

func (b *blockRows) next() (err error) {
	if b.more = b.rows.Next(); !b.more {
		return b.rows.Err()
	}
	b.block, err = scanBlock(b.rows)
	return err
}

// agrees reports whether two histories, each up to its block, may be the same.
// If both have the chain's hash, that covers blocks without changes as well.
func (h BlockHeader) agrees(other BlockHeader) bool {
	known := h.Number == other.Number && h.Hash != (entity.Hash{}) && other.Hash != (entity.Hash{})
	return h.Digest == other.Digest && (!known || h.Hash == other.Hash)
}

// HeaderAt returns the last block at or below a number, with its hash and time
// if known. It also finds blocks below the horizon, because pruning removes
// their changes but not their headers. The header is Empty when there is none.
func (e *Entities) HeaderAt(ctx context.Context, number uint64) (h BlockHeader, err error) {
	defer wrap(&err, "header")
	return inView(ctx, e.db, func(ctx context.Context, q driver.Querier) (BlockHeader, error) {
		return e.db.meta.headAt(ctx, q, number)
	})
}

// HeaderAt is Entities.HeaderAt in the snapshot's view.
func (s *Snapshot) HeaderAt(ctx context.Context, number uint64) (h BlockHeader, err error) {
	defer wrap(&err, "header")
	if err := s.idle(ctx); err != nil {
		return h, err
	}
	return s.ents.db.meta.headAt(context.WithoutCancel(ctx), s.reader, number)
}

// Header returns the last block that the snapshot shows, with its hash and time
// if known. Its number may be below Number, because numbers may have gaps.
func (s *Snapshot) Header() BlockHeader { return s.shown }
