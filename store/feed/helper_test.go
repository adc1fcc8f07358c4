package feed

import (
	"archive/tar"
	"bytes"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

const arkivSmall = "../../testdata/arkiv-small"

func tarPath() string      { return filepath.Join(arkivSmall, "blocks.tar") }
func databasePath() string { return filepath.Join(arkivSmall, "sqlite-store.db") }

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// collect ranges over a sequence that must not fail.
func collect[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var all []T
	for v, err := range seq {
		require.NoError(t, err)
		all = append(all, v)
	}
	return all
}

// drain ranges over a sequence and returns how many values came before the
// error that ended it. Nothing may follow an error.
func drain[T any](t testing.TB, seq iter.Seq2[T, error]) (n int, failure error) {
	t.Helper()
	for _, err := range seq {
		require.NoError(t, failure, "the sequence went on after an error")
		if failure = err; err == nil {
			n++
		}
	}
	return n, failure
}

// entry is one tar entry before compression.
type entry struct {
	name  string
	lines string // compressed into the entry; empty: an entry of no bytes
	raw   string // the entry's bytes, instead of lines
	typ   byte

	records map[string]string // of its extended header
}

func block(n, lines string) entry { return entry{name: "block-" + n + ".json.zst", lines: lines} }

func makeTar(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		data := []byte(e.raw)
		if e.lines != "" {
			data = compress(t, e.lines)
		}
		if e.typ == 0 {
			e.typ = tar.TypeReg
		}
		hdr := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(data)), Typeflag: e.typ, PAXRecords: e.records}
		require.NoError(t, w.WriteHeader(hdr))
		_, err := w.Write(data)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

func compress(t testing.TB, text string) []byte {
	t.Helper()
	return encoder().EncodeAll([]byte(text), nil)
}

// encoder is one for all tests, and small: a fuzzer would spend its time making others.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<17))
	if err != nil {
		panic(err)
	}
	return enc
})

// lineFor writes an operation that is right in every respect.
func lineFor(op entity.Op) string {
	var buf bytes.Buffer
	w := NewTarWriter(&buf)
	if _, err := w.encode(&entity.Block{Ops: []entity.Op{op}}); err != nil {
		panic(err)
	}
	return w.lines.String()
}

func sampleKey(n byte) (key entity.Key) {
	for i := range key {
		key[i] = n + byte(i)
	}
	return key
}

// sampleBlocks has every kind, empty blocks, and values at the edges.
func sampleBlocks() []entity.Block {
	owner := entity.Address{0: 0xab, 19: 1}
	full := entity.Op{
		Kind: entity.Create, TxIndex: 65535, OpIndex: 65535, Key: sampleKey(1), BTL: 1<<64 - 1, Owner: owner,
		ContentType: "text/plain; charset=\"utf-8\"", Content: bytes.Repeat([]byte{0, 255, '<'}, 1000),
		StringAttributes:  map[string]string{"type": "node", "empty": "", "größe": "\x00\t\u2028<&>\\\"𝄞", "\x7f": "a"},
		NumericAttributes: map[string]uint64{"type": 0, "most": 1<<64 - 1, "half": 1 << 63},
	}
	bare := entity.Op{Kind: entity.Update, Key: sampleKey(1), BTL: 1}
	return []entity.Block{
		{Number: 0},
		{Number: 7, Hash: entity.Hash{0: 1, 31: 7}, Time: 1_700_000_007, Ops: []entity.Op{full, bare}},
		{Number: 8},
		{Number: 9, Hash: entity.Hash{0: 1, 31: 9}},
		{Number: 10, Time: 1<<64 - 1},
		{Number: entity.MaxBlockNumber, Ops: []entity.Op{
			{Kind: entity.ExtendBTL, TxIndex: 1, Key: sampleKey(200), BTL: 5},
			{Kind: entity.ChangeOwner, TxIndex: 1, OpIndex: 2, Key: sampleKey(3), Owner: owner},
			{Kind: entity.Delete, TxIndex: 2, Key: sampleKey(4)},
			{Kind: entity.Expire, TxIndex: 3, Key: sampleKey(255)},
		}},
	}
}

func writeTar(t testing.TB, blocks []entity.Block) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := NewTarWriter(&buf)
	for _, b := range blocks {
		require.NoError(t, w.Write(b))
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}
