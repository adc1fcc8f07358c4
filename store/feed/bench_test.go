package feed

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkReadTar reads Arkiv's file; bytes are counted in the tar.
func BenchmarkReadTar(b *testing.B) {
	data := readFile(b, tarPath())
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	ops := 0
	for b.Loop() {
		ops = 0
		for block, err := range ReadTar(bytes.NewReader(data)) {
			if err != nil {
				b.Fatal(err)
			}
			ops += len(block.Ops)
		}
	}
	require.Equal(b, 1285, ops)
}

// BenchmarkWriteTar writes the blocks of Arkiv's file; bytes are counted in the
// resulting tar.
func BenchmarkWriteTar(b *testing.B) {
	blocks := collect(b, ReadTar(bytes.NewReader(readFile(b, tarPath()))))
	b.SetBytes(int64(len(writeTar(b, blocks))))
	b.ReportAllocs()
	for b.Loop() {
		w := NewTarWriter(io.Discard)
		for _, block := range blocks {
			if err := w.Write(block); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
