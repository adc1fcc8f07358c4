package duckdb

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The parts of DuckDB's file format that this package uses: three headers of 4
// KiB, where the second and the third are written alternately, then blocks of
// one size. Headers and blocks begin with their checksum. All numbers are
// little-endian.
const (
	headerBytes = 4096
	blocksStart = 3 * headerBytes

	checksumBytes   = 8
	iterationOffset = checksumBytes      // within a header
	blockSizeOffset = checksumBytes + 32 // behind iteration, metadata, free list and number of blocks

	minBlockSize = 16 << 10
	maxBlockSize = 256 << 10
)

// header describes the state of the file after a checkpoint. A file has two, and
// checkpoints write them in turn, so that the older one is whole while the newer
// one is written: the header with the higher iteration is in force.
type header []byte

func (h header) iteration() uint64 { return binary.LittleEndian.Uint64(h[iterationOffset:]) }

func (h header) blockSize() int64 { return int64(binary.LittleEndian.Uint64(h[blockSizeOffset:])) }

// readHeader returns the header of the last checkpoint that ended. It is nil when
// there is none that can be read: a file that the engine has yet to write or will
// refuse.
func readHeader(r io.ReaderAt) (header, error) {
	both := make([]byte, 2*headerBytes)
	if n, err := r.ReadAt(both, headerBytes); n < len(both) {
		if err == io.EOF {
			err = nil
		}
		return nil, err
	}
	first, second := both[:headerBytes], both[headerBytes:]
	if !intact(first) || !intact(second) {
		return nil, nil
	}
	h := header(second)
	if header(first).iteration() > h.iteration() {
		h = first
	}
	if size := h.blockSize(); size < minBlockSize || size > maxBlockSize || size%8 != 0 {
		return nil, fmt.Errorf("blocks of %d bytes: not a file that this version knows", size)
	}
	return h, nil
}

// intact reports whether a header or block has the checksum that it begins
// with.
func intact(b []byte) bool {
	return binary.LittleEndian.Uint64(b) == checksum(b[checksumBytes:])
}

// checksum is the one of DuckDB's storage, of a multiple of 8 bytes.
func checksum(b []byte) uint64 {
	sum := uint64(5381)
	for ; len(b) >= 8; b = b[8:] {
		sum ^= binary.LittleEndian.Uint64(b) * 0xbf58476d1ce4e5b9
	}
	return sum
}
