package feed

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store/entity"
)

func TestTarRoundTrip(t *testing.T) {
	want := sampleBlocks()
	want[0].Horizon = want[len(want)-1].Number
	data := writeTar(t, want)
	require.Equal(t, want, collect(t, ReadTar(bytes.NewReader(data))))
	require.Equal(t, data, writeTar(t, want), "the same blocks give the same bytes")
}

// Arkiv's own file, read and written, has the same entries with the same lines.
func TestTarRoundTripReal(t *testing.T) {
	original := readFile(t, tarPath())
	written := writeTar(t, collect(t, ReadTar(bytes.NewReader(original))))
	require.Equal(t, written, writeTar(t, collect(t, ReadTar(bytes.NewReader(written)))))
	want, got := entriesOf(t, original), entriesOf(t, written)
	require.Equal(t, want, got)
}

type plainEntry struct {
	hdr   tar.Header
	lines string
}

func entriesOf(t *testing.T, data []byte) []plainEntry {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	require.NoError(t, err)
	defer dec.Close()
	r := tar.NewReader(bytes.NewReader(data))
	var all []plainEntry
	for {
		hdr, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		body, err := io.ReadAll(r)
		require.NoError(t, err)
		lines, err := dec.DecodeAll(body, nil)
		require.NoError(t, err)
		require.Equal(t, len(body) == 0, len(lines) == 0, "empty blocks have no frame")
		hdr.Size = 0
		all = append(all, plainEntry{*hdr, string(lines)})
	}
}

func TestTarWriterRefuses(t *testing.T) {
	var buf bytes.Buffer
	w := NewTarWriter(&buf)
	require.NoError(t, w.Write(entity.Block{Number: 5}))
	size := buf.Len()
	require.ErrorContains(t, w.Write(entity.Block{Number: 5}), "block 5 after block 5")
	require.ErrorIs(t, w.Write(entity.Block{Number: entity.MaxBlockNumber + 1}), entity.ErrInvalid)
	require.ErrorIs(t, w.Write(entity.Block{Number: 6, Horizon: entity.MaxBlockNumber + 1}), entity.ErrInvalid)
	require.ErrorIs(t, w.Write(entity.Block{Number: 6, Ops: []entity.Op{{Kind: 9}}}), entity.ErrInvalid)
	huge := entity.Op{Kind: entity.Create, BTL: 1, Content: make([]byte, MaxLine*3/4)}
	require.ErrorContains(t, w.Write(entity.Block{Number: 6, Ops: []entity.Op{huge}}), "a line may have")
	require.Equal(t, size, buf.Len(), "a refused block leaves nothing")
	require.NoError(t, w.Write(entity.Block{Number: 6}))
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	require.ErrorContains(t, w.Write(entity.Block{Number: 7}), "closed")
	require.Len(t, collect(t, ReadTar(&buf)), 2)
}

// failingWriter fails once n bytes are written.
type failingWriter struct{ n int }

var errFull = errors.New("disk full")

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.n -= len(p); w.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestTarWriterReportsErrors(t *testing.T) {
	blocks := sampleBlocks()
	for n := range len(writeTar(t, blocks)) / 512 {
		w := NewTarWriter(&failingWriter{n: n * 512})
		var first error
		for _, b := range blocks {
			if err := w.Write(b); first == nil {
				first = err
			} else {
				require.ErrorIs(t, err, errFull, "every call fails after the first")
			}
		}
		if err := w.Close(); first == nil {
			first = err
		}
		require.ErrorIs(t, first, errFull, "after %d bytes", n*512)
	}
}

func TestTarRoundTripRandom(t *testing.T) {
	text := rapid.String()
	name := rapid.StringMatching(`[^$\x00]\pL{0,3}`)
	op := rapid.Custom(func(t *rapid.T) entity.Op {
		op := entity.Op{
			Kind:    rapid.SampledFrom([]entity.Kind{entity.Create, entity.Update, entity.ExtendBTL, entity.ChangeOwner, entity.Delete, entity.Expire}).Draw(t, "kind"),
			TxIndex: uint32(rapid.Uint16().Draw(t, "tx")), OpIndex: uint32(rapid.Uint16().Draw(t, "op")),
		}
		copy(op.Key[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
		if op.Kind <= entity.ExtendBTL {
			op.BTL = rapid.Uint64Min(1).Draw(t, "btl")
		}
		if op.Kind <= entity.Update || op.Kind == entity.ChangeOwner {
			copy(op.Owner[:], rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "owner"))
		}
		if op.Kind <= entity.Update {
			op.ContentType = text.Draw(t, "type")
			op.Content = nilIfEmpty(rapid.SliceOf(rapid.Byte()).Draw(t, "content"))
			if m := rapid.MapOf(name, text).Draw(t, "strings"); len(m) > 0 {
				op.StringAttributes = m
			}
			if m := rapid.MapOf(name, rapid.Uint64()).Draw(t, "numbers"); len(m) > 0 {
				op.NumericAttributes = m
			}
		}
		return op
	})
	rapid.Check(t, func(rt *rapid.T) {
		var blocks []entity.Block
		number := uint64(0)
		for range rapid.IntRange(0, 4).Draw(rt, "blocks") {
			number += uint64(rapid.Uint16().Draw(rt, "gap")) + 1
			ops := rapid.SliceOfNDistinct(op, 0, 4, func(op entity.Op) uint64 {
				return entity.MakeSequence(0, op.TxIndex, op.OpIndex)
			}).Draw(rt, "ops")
			blocks = append(blocks, entity.Block{Number: number, Ops: nilIfEmpty(ops)})
		}
		require.Equal(t, blocks, collect(t, ReadTar(bytes.NewReader(writeTar(t, blocks)))))
	})
}

func nilIfEmpty[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}

func TestTarWriteAll(t *testing.T) {
	want := sampleBlocks()
	var got bytes.Buffer
	n := 0
	require.NoError(t, NewTarWriter(&got).WriteAll(t.Context(), streamOf(want, nil), func(*entity.Block) { n++ }))
	require.Equal(t, writeTar(t, want), got.Bytes())
	require.Len(t, want, n)

	broken := errors.New("broken")
	require.ErrorIs(t, NewTarWriter(io.Discard).WriteAll(t.Context(), streamOf(want, broken), nil), broken)
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, NewTarWriter(io.Discard).WriteAll(ended, streamOf(want, nil), nil), context.Canceled)
}

// streamOf streams blocks, and then an error that is not nil.
func streamOf(blocks []entity.Block, err error) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		for _, b := range blocks {
			if !yield(b, nil) {
				return
			}
		}
		if err != nil {
			yield(entity.Block{}, err)
		}
	}
}
