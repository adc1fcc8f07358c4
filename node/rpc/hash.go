package rpc

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/varvedb/varve/store"
)

// hashIndex finds blocks by hash, because stores have no such index. It holds
// four bytes of each hash, in spans of blocks, and is filled on demand from the
// head down. Blocks of a span that may have the hash are read and compared.
type hashIndex struct {
	lock  chan struct{}   // a lock of the fields below that can be awaited with a context
	spans map[uint64]span // by the numbers of their blocks, divided by spanBlocks
}

// spanBlocks is the number of block numbers in a span.
const spanBlocks = 1024

type span struct {
	last   store.BlockHeader // last header when it was read: if that has changed, earlier ones may have too
	begins []uint32          // first four bytes of each hash
}

// find returns the block with a hash in a snapshot.
func (x *hashIndex) find(ctx context.Context, snap *store.Snapshot, hash topic) (b store.BlockHeader, ok bool, err error) {
	select {
	case x.lock <- struct{}{}:
		defer func() { <-x.lock }()
	case <-ctx.Done():
		return b, false, ctx.Err()
	}
	for last := snap.Head(); !last.Empty; {
		if err := ctx.Err(); err != nil {
			return b, false, err
		}
		n := last.Number / spanBlocks
		first := n * spanBlocks
		if s, known := x.spans[n]; !known || s.last != last || slices.Contains(s.begins, begin(hash)) {
			blocks, err := snap.Headers(ctx, first, last.Number)
			if err != nil {
				return b, false, err
			}
			s = span{last: last, begins: make([]uint32, len(blocks))}
			for i, b := range blocks {
				of := blockHash(b)
				if of == hash {
					return b, true, nil
				}
				s.begins[i] = begin(of)
			}
			x.spans[n] = s
		}
		if first == 0 {
			break
		}
		if last, err = snap.HeaderAt(ctx, first-1); err != nil {
			return b, false, err
		}
	}
	return b, false, nil
}

func begin(hash topic) uint32 { return binary.BigEndian.Uint32(hash[:]) }
