// Package rowfile is a file of tables, row by row: the format of a backup. It
// is a zstd stream of records, so it is read and written from front to back.
//
//	file    = magic, head, table*, end
//	head    = uvarint length, bytes: the writer's description of the contents
//	table   = 'T', name, uvarint columns, (name, type byte)*, row*
//	row     = 'R', value*
//	value   = Int: varint; Uint: uvarint; Text and Blob: uvarint length, bytes
//	end     = 'E', uvarint rows of all tables, CRC-32C of everything before it
package rowfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/varvedb/varve/store/driver"
)

const (
	magic    = "varve rows 2\n"
	tagTable = 'T'
	tagRow   = 'R'
	tagEnd   = 'E'

	// maxValue bounds one value: a larger length is damage.
	maxValue = 1 << 30
)

// ErrFormat: the file is not a row file, or is damaged or incomplete.
var ErrFormat = errors.New("not a whole backup")

// Writer writes tables. Close ends the file.
type Writer struct {
	z    *zstd.Encoder
	buf  []byte
	sum  hash.Hash32
	cols []driver.Column
	rows uint64
	err  error
}

// NewWriter begins a file.
func NewWriter(w io.Writer, head []byte) (*Writer, error) {
	// With two goroutines the encoder compresses and writes while the caller
	// reads rows.
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
	if err != nil {
		return nil, err
	}
	fw := &Writer{z: z, sum: crc32.New(crc32.MakeTable(crc32.Castagnoli))}
	fw.buf = append(fw.buf, magic...)
	fw.text(head)
	return fw, fw.flush()
}

// Table begins a table.
func (w *Writer) Table(t *driver.Table) error {
	w.cols = t.Columns
	w.buf = append(w.buf, tagTable)
	w.text([]byte(t.Name))
	w.buf = binary.AppendUvarint(w.buf, uint64(len(t.Columns)))
	for _, c := range t.Columns {
		w.text([]byte(c.Name))
		w.buf = append(w.buf, byte(c.Type))
	}
	return w.flush()
}

// Row writes a row of the table: *int64, *uint64 or *[]byte for each column.
func (w *Writer) Row(values []any) error {
	w.rows++
	w.buf = append(w.buf, tagRow)
	for _, v := range values {
		switch v := v.(type) {
		case *int64:
			w.buf = binary.AppendVarint(w.buf, *v)
		case *uint64:
			w.buf = binary.AppendUvarint(w.buf, *v)
		case *[]byte:
			w.text(*v)
		default:
			return fmt.Errorf("row file: value of type %T", v)
		}
	}
	return w.flush()
}

// Rows returns how many rows were written.
func (w *Writer) Rows() uint64 { return w.rows }

func (w *Writer) text(b []byte) {
	w.buf = append(binary.AppendUvarint(w.buf, uint64(len(b))), b...)
}

func (w *Writer) flush() error {
	if w.err == nil {
		w.sum.Write(w.buf)
		_, w.err = w.z.Write(w.buf)
	}
	w.buf = w.buf[:0]
	return w.err
}

// Close ends the file. It does not close the underlying writer.
func (w *Writer) Close() error {
	w.buf = binary.AppendUvarint(append(w.buf, tagEnd), w.rows)
	if err := w.flush(); err != nil {
		return err
	}
	if _, err := w.z.Write(binary.LittleEndian.AppendUint32(nil, w.sum.Sum32())); err != nil {
		return err
	}
	return w.z.Close()
}

// Abort gives the file up.
func (w *Writer) Abort() { _ = w.z.Close() }

// Reader reads a file.
type Reader struct {
	Head []byte // the writer's description of the contents

	z     *zstd.Decoder
	r     summed
	table *driver.Table
	rows  uint64
}

// NewReader begins to read.
func NewReader(r io.Reader) (*Reader, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
	if err != nil {
		return nil, err
	}
	fr := &Reader{z: z, r: summed{bufio.NewReaderSize(z, 1<<16), crc32.New(crc32.MakeTable(crc32.Castagnoli))}}
	begin := make([]byte, len(magic))
	_, err = io.ReadFull(&fr.r, begin)
	if err == nil && string(begin) != magic {
		err = errors.New("it does not begin as one")
	}
	if err == nil {
		fr.Head, err = fr.text()
	}
	if err != nil {
		z.Close()
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return fr, nil
}

// Close releases the reader's memory.
func (r *Reader) Close() { r.z.Close() }

// Next returns the next row and its table. The values are int64, uint64, string
// for Text and []byte for Blob, and belong to the caller. It returns io.EOF
// after the last row of a complete file. Tables without rows are not returned.
func (r *Reader) Next() (*driver.Table, []any, error) {
	for {
		tag, err := r.r.ReadByte()
		if err != nil {
			return nil, nil, r.truncated(err)
		}
		switch {
		case tag == tagTable:
			if err := r.begin(); err != nil {
				return nil, nil, r.truncated(err)
			}
		case tag == tagRow && r.table != nil:
			values, err := r.row()
			if err != nil {
				return nil, nil, r.truncated(err)
			}
			return r.table, values, nil
		case tag == tagEnd:
			return nil, nil, r.end()
		default:
			return nil, nil, fmt.Errorf("%w: record %q", ErrFormat, tag)
		}
	}
}

func (r *Reader) truncated(err error) error {
	return fmt.Errorf("%w: after %d rows: %w", ErrFormat, r.rows, err)
}

func (r *Reader) end() error {
	rows, err := binary.ReadUvarint(&r.r)
	if err != nil {
		return r.truncated(err)
	}
	want := r.r.sum.Sum32()
	var stored [4]byte
	if _, err := io.ReadFull(&r.r, stored[:]); err != nil {
		return r.truncated(err)
	}
	if rows != r.rows || binary.LittleEndian.Uint32(stored[:]) != want {
		return fmt.Errorf("%w: its rows do not have the checksum or number that its end says", ErrFormat)
	}
	return io.EOF
}

func (r *Reader) begin() error {
	name, err := r.text()
	if err != nil {
		return err
	}
	n, err := binary.ReadUvarint(&r.r)
	if err != nil || n > 1000 {
		return errors.Join(err, fmt.Errorf("%d columns", n))
	}
	t := &driver.Table{Name: string(name)}
	for range n {
		column, err := r.text()
		if err != nil {
			return err
		}
		typ, err := r.r.ReadByte()
		if err != nil {
			return err
		}
		t.Columns = append(t.Columns, driver.Column{Name: string(column), Type: driver.Type(typ)})
	}
	r.table = t
	return nil
}

func (r *Reader) row() ([]any, error) {
	r.rows++
	values := make([]any, len(r.table.Columns))
	for i, c := range r.table.Columns {
		var err error
		switch c.Type {
		case driver.Int:
			values[i], err = binary.ReadVarint(&r.r)
		case driver.Uint:
			values[i], err = binary.ReadUvarint(&r.r)
		case driver.Text:
			var b []byte
			b, err = r.text()
			values[i] = string(b)
		case driver.Blob:
			values[i], err = r.text()
		default:
			err = fmt.Errorf("column type %d", c.Type)
		}
		if err != nil {
			return nil, err
		}
	}
	return values, nil
}

// text reads a length and that many bytes.
func (r *Reader) text() ([]byte, error) {
	n, err := binary.ReadUvarint(&r.r)
	if err != nil || n > maxValue {
		return nil, errors.Join(err, fmt.Errorf("a value of %d bytes", n))
	}
	b := make([]byte, n)
	_, err = io.ReadFull(&r.r, b)
	return b, err
}

// summed is a reader that computes a checksum of everything read. The end of
// the file within a record is an error.
type summed struct {
	r   *bufio.Reader
	sum hash.Hash32
}

// Read implements io.Reader.
func (s *summed) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.sum.Write(b[:n])
	return n, unexpected(err)
}

// ReadByte implements io.ByteReader.
func (s *summed) ReadByte() (byte, error) {
	b, err := s.r.ReadByte()
	if err == nil {
		s.sum.Write([]byte{b})
	}
	return b, unexpected(err)
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
