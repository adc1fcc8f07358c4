package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

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

// String names the block.
func (h BlockHeader) String() string {
	if h.Empty {
		return "no block"
	}
	return fmt.Sprintf("block %d", h.Number)
}

// identified reports whether the chain's hash or time of the block is known.
func (h BlockHeader) identified() bool { return h.Hash != (entity.Hash{}) || h.Time != 0 }

// The record of a block is its digest and, where hash or time are known, these and a
// sum of all: nothing else covers them. It is one value, not columns, so that stores
// from before there were hashes are what they were, read and written alike.
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

// sumOf covers the number too: a record that belongs to another block is damage.
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

// identities walks the blocks whose hash or time on the chain is known.
type identities struct {
	rows  driver.Rows
	block BlockHeader
	more  bool // block is the next one
}

func (m meta) identities(ctx context.Context, q driver.Querier, last uint64) (*identities, error) {
	rows, err := q.Query(ctx, m.Statements["list_identified"], int64(last))
	if err != nil {
		return nil, err
	}
	ids := &identities{rows: rows}
	if err := ids.advance(); err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	return ids, nil
}

func (ids *identities) advance() (err error) {
	if ids.more = ids.rows.Next(); !ids.more {
		return ids.rows.Err()
	}
	ids.block, err = scanBlock(ids.rows)
	return err
}

// with gives changesets the hash and time of their blocks, and between them the blocks
// that changed nothing.
func (ids *identities) with(sets iter.Seq2[entity.Changeset, error]) iter.Seq2[entity.Changeset, error] {
	return func(yield func(entity.Changeset, error) bool) {
		for set, err := range sets {
			for err == nil && ids.more && ids.block.Number < set.Block {
				empty := entity.Changeset{Block: ids.block.Number, Hash: ids.block.Hash, Time: ids.block.Time, Horizon: set.Horizon}
				set.Horizon = 0 // the first one tells
				if !yield(empty, nil) {
					return
				}
				err = ids.advance()
			}
			if err == nil && ids.more && ids.block.Number == set.Block {
				set.Hash, set.Time = ids.block.Hash, ids.block.Time
				err = ids.advance()
			}
			if !yield(set, err) || err != nil {
				return
			}
		}
	}
}

// agrees reports whether two histories, each up to its block, may be the same
// one: where both know the chain's hash, it covers blocks without changes as
// well.
func (h BlockHeader) agrees(other BlockHeader) bool {
	known := h.Number == other.Number && h.Hash != (entity.Hash{}) && other.Hash != (entity.Hash{})
	return h.Digest == other.Digest && (!known || h.Hash == other.Hash)
}

// HeaderAt returns the last block at or below a number, with what its chain calls it by.
// Blocks below the horizon are among them: pruning forgets what they changed, not that
// they were. It is Empty when there is none.
func (e *Entities) HeaderAt(ctx context.Context, number uint64) (h BlockHeader, err error) {
	defer wrap(&err, "header")
	err = e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		h, err = e.db.meta.headAt(ctx, q, number)
		return err
	})
	return h, err
}

// HeaderAt is Entities.HeaderAt in the snapshot's view.
func (s *Snapshot) HeaderAt(ctx context.Context, number uint64) (h BlockHeader, err error) {
	defer wrap(&err, "header")
	if err := s.idle(ctx); err != nil {
		return h, err
	}
	return s.ents.db.meta.headAt(context.WithoutCancel(ctx), s.reader, number)
}

// Header returns the last block that the snapshot shows, with what its chain calls it by.
// Its number is below Number where no block has that.
func (s *Snapshot) Header() BlockHeader { return s.shown }
