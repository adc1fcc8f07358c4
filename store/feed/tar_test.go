package feed

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

func TestReadTarReal(t *testing.T) {
	data := readFile(t, tarPath())
	sum := sha256.Sum256(data)
	require.Equal(t, "e519483859f9138997dda8fef4cfb4d616100de085e66453cb47cc6e3b738b67", hex.EncodeToString(sum[:]))

	kinds := map[entity.Kind]int{}
	blocks := collect(t, ReadTar(bytes.NewReader(data)))
	empty := 0
	for _, b := range blocks {
		require.NoError(t, b.Validate())
		if len(b.Ops) == 0 {
			empty++
		}
		for _, op := range b.Ops {
			kinds[op.Kind]++
		}
	}
	require.Equal(t, map[entity.Kind]int{
		entity.Create: 800, entity.Update: 324, entity.ExtendBTL: 43,
		entity.ChangeOwner: 52, entity.Delete: 48, entity.Expire: 18,
	}, kinds)
	require.Len(t, blocks, 100)
	require.Equal(t, 10, empty)
	require.Equal(t, uint64(1001), blocks[0].Number)
	require.Equal(t, uint64(1263), blocks[99].Number)
}

func TestReadTarStopsEarly(t *testing.T) {
	for b, err := range ReadTar(bytes.NewReader(readFile(t, tarPath()))) {
		require.NoError(t, err)
		require.Equal(t, uint64(1001), b.Number)
		break
	}
}

func TestReadTarSmallReads(t *testing.T) {
	want := sampleBlocks()
	got := collect(t, ReadTar(iotest.OneByteReader(bytes.NewReader(writeTar(t, want)))))
	require.Equal(t, want, got)
	got = collect(t, ReadTar(iotest.DataErrReader(bytes.NewReader(writeTar(t, want)))))
	require.Equal(t, want, got)
}

func TestReadTarKeepsErrorsOfTheInput(t *testing.T) {
	broken := errors.New("cable cut")
	data := readFile(t, tarPath())
	for _, n := range []int{0, 100, 512, 4000, 8704, 100_000} {
		r := io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(broken))
		_, err := drain(t, ReadTar(r))
		require.ErrorIs(t, err, broken)
		require.NotErrorIs(t, err, ErrFormat)
	}
}

// Whatever byte a tar is cut at, it is an error.
func TestReadTarTruncated(t *testing.T) {
	data := makeTar(t, block("1", deleteLine), block("2", ""), block("3", createLine))
	for n := range len(data) {
		_, err := drain(t, ReadTar(bytes.NewReader(data[:n])))
		require.ErrorIs(t, err, ErrFormat, "cut at %d of %d", n, len(data))
		require.ErrorContains(t, err, "the tar is cut off", "cut at %d of %d", n, len(data))
	}
}

// At whatever byte an entry's compressed data is cut, it is an error, except
// where no byte is left, which is an empty block.
func TestReadTarTruncatedEntry(t *testing.T) {
	frame := string(compress(t, createLine+deleteLine))
	for n := 1; n < len(frame); n++ {
		_, err := drain(t, ReadTar(bytes.NewReader(makeTar(t, entry{name: "block-5.json.zst", raw: frame[:n]}))))
		require.ErrorIs(t, err, ErrFormat, "cut at %d of %d", n, len(frame))
		require.ErrorContains(t, err, `entry "block-5.json.zst"`)
	}
	for _, tail := range []string{"x", "xyz", "garbage", "\x00\x00\x00\x00"} {
		_, err := drain(t, ReadTar(bytes.NewReader(makeTar(t, entry{name: "block-5.json.zst", raw: frame + tail}))))
		require.ErrorIs(t, err, ErrFormat, "%q after the frame", tail)
	}
}

// A changed byte within an entry never gives other operations.
func TestReadTarCorruptedEntry(t *testing.T) {
	frame := compress(t, createLine+deleteLine)
	want := collect(t, ReadTar(bytes.NewReader(makeTar(t, entry{name: "block-5.json.zst", raw: string(frame)}))))
	for i := range frame {
		bad := bytes.Clone(frame)
		bad[i] ^= 0x10
		for b, err := range ReadTar(bytes.NewReader(makeTar(t, entry{name: "block-5.json.zst", raw: string(bad)}))) {
			if err == nil {
				require.Equal(t, want[0], b, "byte %d", i)
			} else {
				require.ErrorIs(t, err, ErrFormat, "byte %d", i)
			}
		}
	}
}

func TestReadTarEntries(t *testing.T) {
	name := func(s string) entry { return entry{name: s, lines: deleteLine} }
	tests := []struct {
		name    string
		entries []entry
		blocks  int
		want    string
	}{
		{"falling", []entry{block("9", ""), block("8", "")}, 1, `entry "block-8.json.zst": block 8 after block 9`},
		{"repeated", []entry{block("9", ""), block("9", "")}, 1, "block 9 after block 9"},
		{"second genesis", []entry{block("0", ""), block("0", "")}, 1, "block 0 after block 0"},
		{"other name", []entry{name("blocks.json.zst")}, 0, `entry "blocks.json.zst": the name has not the form block-<N>.json.zst`},
		{"no compression", []entry{name("block-1.json")}, 0, "has not the form"},
		{"in a directory", []entry{name("./block-1.json.zst")}, 0, "has not the form"},
		{"leading zero", []entry{name("block-01.json.zst")}, 0, "has not the form"},
		{"sign", []entry{name("block-+1.json.zst")}, 0, "has not the form"},
		{"negative", []entry{name("block--1.json.zst")}, 0, "has not the form"},
		{"no number", []entry{name("block-.json.zst")}, 0, "has not the form"},
		{"number above the limit", []entry{block("4294967296", "")}, 0, "block number 4294967296 is above 4294967295"},
		{"number above 64 bits", []entry{block("99999999999999999999", "")}, 0, "block number 99999999999999999999 is above"},
		{"no horizon", []entry{{name: "block-1.json.zst", records: map[string]string{recordHorizon: "-1"}}}, 0, "header record VARVE.horizon"},
		{"horizon above the limit", []entry{{name: "block-1.json.zst", records: map[string]string{recordHorizon: "4294967296"}}}, 0, "block 4294967296 is above 4294967295"},
		{"directory", []entry{{name: "block-1.json.zst/", typ: tar.TypeDir}}, 0, "not a regular file"},
		{"symbolic link", []entry{{name: "block-1.json.zst", typ: tar.TypeSymlink}}, 0, "not a regular file"},
		{"no frame", []entry{{name: "block-1.json.zst", raw: deleteLine}}, 0, `entry "block-1.json.zst": line 1: decompress: invalid input: magic number mismatch`},
		{"second line", []entry{block("1", ""), block("2", deleteLine+"{}\n")}, 1, `entry "block-2.json.zst": line 2: the line has 0 operations`},
		{"empty line", []entry{block("1", deleteLine+"\n"+deleteLine)}, 0, "line 2: empty line"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n, err := drain(t, ReadTar(bytes.NewReader(makeTar(t, test.entries...))))
			require.ErrorIs(t, err, ErrFormat)
			require.ErrorContains(t, err, test.want)
			require.Equal(t, test.blocks, n)
		})
	}
}

func TestReadTarOtherFiles(t *testing.T) {
	whole := readFile(t, tarPath())
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":    {nil, "cut off"},
		"database":   {readFile(t, databasePath()), "no tar"},
		"zstd":       {compress(t, string(whole)), "no tar"},
		"two tars":   {append(bytes.Clone(whole), whole...), "data after the end"},
		"text":       {bytes.Repeat([]byte("hello\n"), 1000), "no tar"},
		"short text": {[]byte("hello\n"), "cut off"},
	} {
		_, err := drain(t, ReadTar(bytes.NewReader(test.data)))
		require.ErrorIs(t, err, ErrFormat, name)
		require.ErrorContains(t, err, test.want, name)
	}
	// GNU tar pads with zeros; a tar of no entries has no blocks.
	padded := append(makeTar(t, block("1", "")), make([]byte, 10240)...)
	require.Len(t, collect(t, ReadTar(bytes.NewReader(padded))), 1)
	require.Empty(t, collect(t, ReadTar(bytes.NewReader(makeTar(t)))))
	// An empty frame is an empty block, too.
	require.Len(t, collect(t, ReadTar(bytes.NewReader(makeTar(t, entry{name: "block-1.json.zst", raw: emptyFrame(t)})))), 1)
}

func emptyFrame(t *testing.T) string {
	enc, err := zstd.NewWriter(nil, zstd.WithZeroFrames(true))
	require.NoError(t, err)
	defer enc.Close()
	return string(enc.EncodeAll(nil, nil))
}

func TestReadTarLimits(t *testing.T) {
	read := func(text string, lim limits) error {
		_, err := drain(t, readTar(bytes.NewReader(makeTar(t, block("5", text))), lim))
		return err
	}
	lim := limits{entry: 3 * int64(len(deleteLine)), line: len(deleteLine) - 1, window: 1 << 20}
	require.NoError(t, read(strings.Repeat(deleteLine, 3), lim))
	require.ErrorContains(t, read(strings.Repeat(deleteLine, 4), lim), "line 4: the entry is longer than")
	require.ErrorContains(t, read(deleteLine+" "+deleteLine, lim), "line 2: the line is longer than")

	// Lines longer than the buffer.
	long := lineFor(entity.Op{Kind: entity.Update, BTL: 1, Content: make([]byte, 256<<10)})
	lim = limits{entry: 1 << 30, line: len(long) - 1, window: 1 << 23}
	require.NoError(t, read(deleteLine+long+deleteLine+long, lim))
	lim.line--
	require.ErrorIs(t, read(deleteLine+long, lim), ErrFormat)

	// A window that the entry would need, however small its content.
	lim.window = 1 << 16
	require.ErrorContains(t, read(strings.Repeat(deleteLine, 1000), lim), "needs a window above 65536 bytes")
}

func TestOpenTar(t *testing.T) {
	tarFile, err := OpenTar(tarPath())
	require.NoError(t, err)
	defer tarFile.Close()
	done, total := tarFile.Progress()
	require.Equal(t, int64(0), done)
	require.Equal(t, int64(2003968), total)
	for range 2 {
		before := int64(0)
		for _, err := range tarFile.Blocks() {
			require.NoError(t, err)
			done, _ = tarFile.Progress()
			require.GreaterOrEqual(t, done, before)
			before = done
		}
		done, _ = tarFile.Progress()
		require.Equal(t, total, done)
	}

	_, err = OpenTar(filepath.Join(t.TempDir(), "none.tar"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = OpenTar(t.TempDir())
	require.ErrorContains(t, err, "not a regular file")

	db, err := OpenTar(databasePath())
	require.NoError(t, err)
	defer db.Close()
	_, err = drain(t, db.Blocks())
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, "sqlite-store.db: block tar: no tar header")
}

// A few kilobytes that stand for much more are refused before they take memory.
func TestReadTarBomb(t *testing.T) {
	lim := limits{entry: 1 << 20, line: 1 << 16, window: 1 << 20}
	for name, text := range map[string]string{
		"line":  strings.Repeat(" ", 64<<20),
		"entry": strings.Repeat(deleteLine, 64<<20/len(deleteLine)),
	} {
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
		require.NoError(t, err)
		data := makeTar(t, entry{name: "block-1.json.zst", raw: string(enc.EncodeAll([]byte(text), nil))})
		require.NoError(t, enc.Close())

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = drain(t, readTar(bytes.NewReader(data), lim))
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, ErrFormat, name)
		require.ErrorContains(t, err, "is longer than", name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(24<<20), name)
	}
}
