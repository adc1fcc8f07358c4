package feed

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/varvedb/varve/store/entity"
)

// The limits of a block tar, for reading and writing.
const (
	// MaxEntry is the greatest size of an entry, decompressed, in bytes.
	MaxEntry = 1 << 30
	// MaxLine is the greatest length of an operation's line, in bytes.
	MaxLine = 64 << 20
	// maxWindow bounds the memory of decompression, as the zstd command does.
	maxWindow = 128 << 20
)

// limits holds these limits as variables, which tests lower.
type limits struct {
	entry  int64
	line   int
	window uint64
}

const entryPrefix, entrySuffix = "block-", ".json.zst"

// The extended header records of an entry: hash, time and horizon of its block,
// which do not fit in the entry's name. Arkiv's tars have none of them, and
// readers that do not know them skip them.
const (
	recordHash    = "VARVE.hash"
	recordTime    = "VARVE.time"
	recordHorizon = "VARVE.horizon"
)

// ReadTar streams the blocks of a block tar, in the order of the tar, which
// must be the order of their numbers. An empty entry is an empty block. The
// sequence can be iterated once. It ends at the first error, which names entry
// and line and wraps ErrFormat unless reading r itself failed. Hash, time and
// horizon are as TarWriter wrote them, or zero if the tar has none. Blocks have
// passed entity.Block.Validate and belong to the caller; empty contents and
// attribute maps are nil.
//
// A compressed tar is not accepted: its entries are compressed already.
func ReadTar(r io.Reader) iter.Seq2[entity.Block, error] {
	return readTar(r, limits{entry: MaxEntry, line: MaxLine, window: maxWindow})
}

func readTar(r io.Reader, lim limits) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		t, err := newTarReader(r, lim)
		if err != nil {
			yield(entity.Block{}, err)
			return
		}
		defer t.zstd.Close()
		for {
			b, ok, err := t.next()
			if err != nil {
				yield(entity.Block{}, err)
				return
			}
			if !ok || !yield(b, nil) {
				return
			}
		}
	}
}

// tarReader has the buffers that are reused for every entry.
type tarReader struct {
	limits limits
	src    *source
	tar    *tar.Reader
	zstd   *zstd.Decoder
	buf    []byte // of lines
	last   string // name of the entry before, or ""
	block  uint64 // its number
}

func newTarReader(r io.Reader, lim limits) (*tarReader, error) {
	// A single decoder starts no goroutine that could outlive the loop.
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(lim.window), zstd.WithDecoderMaxMemory(lim.window))
	if err != nil {
		return nil, fmt.Errorf("zstd decoder: %w", err)
	}
	src := &source{buf: bufio.NewReaderSize(r, sourceBuffer)}
	return &tarReader{limits: lim, src: src, tar: tar.NewReader(src), zstd: dec, buf: make([]byte, min(256<<10, lim.line+1))}, nil
}

// next returns the next block, or false after the last. It does not use io.EOF
// for the end, because io.EOF may also be the cause of an error.
func (t *tarReader) next() (b entity.Block, ok bool, err error) {
	hdr, err := t.tar.Next()
	if errors.Is(err, io.EOF) && t.src.err == nil {
		if err := t.src.finish(); err != nil {
			return b, false, fmt.Errorf("block tar%s: %w", t.after(), t.src.classify(err))
		}
		return b, false, nil
	}
	if errors.Is(err, tar.ErrHeader) {
		err = fmt.Errorf("no tar header here, so this is no tar, or a compressed or damaged one: %w", err)
	}
	if err != nil {
		return b, false, fmt.Errorf("block tar%s: %w", t.after(), t.src.classify(err))
	}
	b, line, err := t.entry(hdr)
	switch {
	case err == nil:
		return b, true, nil
	case line > 0:
		err = fmt.Errorf("line %d: %w", line, err)
	}
	return b, false, fmt.Errorf("block tar: entry %q: %w", hdr.Name, t.src.classify(err))
}

// after describes the place of an error between entries.
func (t *tarReader) after() string {
	if t.last == "" {
		return ""
	}
	return fmt.Sprintf(" after entry %q", t.last)
}

// entry reads the block of one entry. With an error, line is the faulty line,
// from 1, or 0 if the error concerns the whole entry.
func (t *tarReader) entry(hdr *tar.Header) (b entity.Block, line int, err error) {
	if b.Number, err = t.number(hdr); err != nil {
		return b, 0, err
	}
	if err := identify(&b, hdr.PAXRecords); err != nil {
		return b, 0, err
	}
	t.last, t.block = hdr.Name, b.Number
	if hdr.Size == 0 {
		return b, 0, nil
	}
	if err := t.zstd.Reset(t.tar); err != nil {
		return b, 0, fmt.Errorf("decompress: %w", err)
	}
	limited := &io.LimitedReader{R: t.zstd, N: t.limits.entry + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(t.buf, t.limits.line+1) // with the line feed
	for line = 1; ; line++ {
		more, err := lines.Scan(), lines.Err()
		switch {
		case limited.N == 0:
			return b, line, malformed("the entry is longer than %d bytes", t.limits.entry)
		case errors.Is(err, bufio.ErrTooLong):
			return b, line, malformed("the line is longer than %d bytes", t.limits.line)
		case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
			return b, line, fmt.Errorf("decompress: needs a window above %d bytes: %w", t.limits.window, err)
		case err != nil:
			return b, line, fmt.Errorf("decompress: %w", err)
		case !more:
			return b, 0, b.Validate() // what only all lines together show
		}
		op, err := decode(lines.Bytes())
		if err != nil {
			return b, line, malformed("%s", err.Error()) // where a line ends early, the tar does not
		}
		b.Ops = append(b.Ops, op)
		one := entity.Block{Number: b.Number, Ops: b.Ops[len(b.Ops)-1:]}
		if err := one.Validate(); err != nil {
			return b, line, err
		}
	}
}

// number reads the block number from an entry's name and checks that it
// increases.
func (t *tarReader) number(hdr *tar.Header) (uint64, error) {
	if hdr.Typeflag != tar.TypeReg {
		return 0, fmt.Errorf("not a regular file (type %q); a block tar holds only block-<N>.json.zst", hdr.Typeflag)
	}
	digits, ok := strings.CutPrefix(hdr.Name, entryPrefix)
	if ok {
		digits, ok = strings.CutSuffix(digits, entrySuffix)
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if !ok || errors.Is(err, strconv.ErrSyntax) || err == nil && strconv.FormatUint(n, 10) != digits {
		return 0, errors.New("the name has not the form block-<N>.json.zst")
	}
	if err != nil || n > entity.MaxBlockNumber {
		return 0, fmt.Errorf("block number %s is above %d", digits, uint64(entity.MaxBlockNumber))
	}
	if t.last != "" && n <= t.block {
		return 0, fmt.Errorf("block %d after block %d, want rising block numbers", n, t.block)
	}
	return n, nil
}

// identify reads hash, time and horizon from an entry's extended header.
func identify(b *entity.Block, records map[string]string) (err error) {
	if text, ok := records[recordHash]; ok {
		if b.Hash, err = entity.ParseHash(text); err != nil {
			return fmt.Errorf("header record %s: %w", recordHash, err)
		}
	}
	if text, ok := records[recordTime]; ok {
		if b.Time, err = strconv.ParseUint(text, 10, 64); err != nil {
			return fmt.Errorf("header record %s: %w", recordTime, err)
		}
	}
	if text, ok := records[recordHorizon]; ok {
		if b.Horizon, err = strconv.ParseUint(text, 10, 64); err == nil && b.Horizon > entity.MaxBlockNumber {
			err = fmt.Errorf("block %d is above %d", b.Horizon, uint64(entity.MaxBlockNumber))
		}
		if err != nil {
			return fmt.Errorf("header record %s: %w", recordHorizon, err)
		}
	}
	return nil
}
