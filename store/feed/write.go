package feed

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/varvedb/varve/store/entity"
)

// TarWriter writes a block tar. The same blocks give the same bytes: headers
// carry no time and no user, attributes are sorted by name, and compression
// uses a fixed level without threads. (Another version of the zstd library may
// compress differently.)
type TarWriter struct {
	tar    *tar.Writer
	zstd   *zstd.Encoder
	lines  bytes.Buffer
	zip    []byte
	any    bool // last is the number of a block
	last   uint64
	closed bool
	err    error // after which nothing more can be written
}

// NewTarWriter writes to w, which the caller closes after Close.
func NewTarWriter(w io.Writer) *TarWriter {
	return &TarWriter{tar: tar.NewWriter(w)}
}

// WriteAll writes a stream to its end and closes the tar. It stops at the first
// error, including the stream's, and when ctx ends. Wrote, if not nil, is
// called after each block.
func (t *TarWriter) WriteAll(ctx context.Context, blocks iter.Seq2[entity.Block, error], wrote func(b *entity.Block)) error {
	for b, err := range blocks {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = t.Write(b)
		}
		if err != nil {
			return err
		}
		if wrote != nil {
			wrote(&b)
		}
	}
	return t.Close()
}

// Write adds a block, whose number must be above the last one's. A block that ReadTar would refuse
// (see entity.Block.Validate, MaxLine, MaxEntry) is an error and leaves the tar as it was; after an
// error of the underlying writer every call fails.
func (t *TarWriter) Write(b entity.Block) error {
	if t.err != nil {
		return t.err
	}
	if t.any && b.Number <= t.last {
		return fmt.Errorf("write block tar: block %d after block %d, want rising block numbers", b.Number, t.last)
	}
	data, err := t.encode(&b)
	if err != nil {
		return fmt.Errorf("write block tar: %w", err)
	}
	if err := t.entry(&b, data); err != nil {
		t.err = fmt.Errorf("write block tar: block %d: %w", b.Number, err)
		return t.err
	}
	t.any, t.last = true, b.Number
	return nil
}

// Close writes the end mark. It does not close the underlying writer. A second Close does nothing.
func (t *TarWriter) Close() error {
	if t.closed {
		return nil
	}
	t.closed = true
	if t.err != nil {
		return t.err
	}
	t.err = errors.New("write block tar: the writer is closed")
	if err := t.tar.Close(); err != nil {
		return fmt.Errorf("write block tar: %w", err)
	}
	return nil
}

// encode returns the compressed lines of a block, nothing for an empty one.
func (t *TarWriter) encode(b *entity.Block) ([]byte, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	if len(b.Ops) == 0 {
		return nil, nil
	}
	t.lines.Reset()
	for i := range b.Ops {
		start := t.lines.Len()
		if err := appendLine(&t.lines, &b.Ops[i]); err != nil {
			return nil, b.OpError(i, err)
		}
		if t.lines.Len()-start > MaxLine || t.lines.Len() > MaxEntry {
			return nil, b.OpError(i, fmt.Errorf("a line may have %d bytes and a block %d", MaxLine, MaxEntry))
		}
	}
	if t.zstd == nil {
		var err error
		t.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
		if err != nil {
			return nil, fmt.Errorf("zstd encoder: %w", err)
		}
	}
	t.zip = t.zstd.EncodeAll(t.lines.Bytes(), t.zip[:0])
	return t.zip, nil
}

func (t *TarWriter) entry(b *entity.Block, data []byte) error {
	hdr := &tar.Header{
		Format:   tar.FormatUSTAR,
		Typeflag: tar.TypeReg,
		Name:     fmt.Sprintf("%s%d%s", entryPrefix, b.Number, entrySuffix),
		Mode:     0o644,
		Size:     int64(len(data)),
		ModTime:  time.Unix(0, 0),
	}
	records := map[string]string{}
	if b.Hash != (entity.Hash{}) {
		records[recordHash] = b.Hash.String()
	}
	if b.Time != 0 {
		records[recordTime] = strconv.FormatUint(b.Time, 10)
	}
	if b.Horizon != 0 {
		records[recordHorizon] = strconv.FormatUint(b.Horizon, 10)
	}
	if len(records) > 0 {
		hdr.Format, hdr.PAXRecords = tar.FormatPAX, records
	}
	if err := t.tar.WriteHeader(hdr); err != nil {
		return err
	}
	_, err := t.tar.Write(data)
	return err
}
