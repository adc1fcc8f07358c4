package postgres

import (
	"encoding/binary"
	"io"

	"github.com/varvedb/varve/store/driver"
)

// copyChunk is about how many bytes of rows are encoded ahead.
const copyChunk = 64 << 10

// copyReader encodes rows for COPY … (FORMAT binary) while they are read; see
// https://www.postgresql.org/docs/18/sql-copy.html. It knows the contract's
// four types, so it needs no types from the server and no reflection, unlike
// pgx.Conn.CopyFrom.
type copyReader struct {
	columns []driver.Column
	rows    []any // not encoded yet
	buf     []byte
	pos     int // in buf: the next byte to be read
	ended   bool
}

func newCopyReader(columns []driver.Column, rows []any) *copyReader {
	r := &copyReader{columns: columns, rows: rows, buf: make([]byte, 0, copyChunk+copyChunk/4)}
	r.buf = append(r.buf, "PGCOPY\n\xff\r\n\x00"...)
	r.buf = append(r.buf, 0, 0, 0, 0, 0, 0, 0, 0) // flags; length of the header's extension
	return r
}

// Read implements io.Reader.
func (r *copyReader) Read(p []byte) (int, error) {
	if r.pos == len(r.buf) {
		if r.ended {
			return 0, io.EOF
		}
		r.buf, r.pos = r.buf[:0], 0
	}
	for !r.ended && len(r.buf) < copyChunk {
		if err := r.encodeRow(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.buf[r.pos:])
	r.pos += n
	return n, nil
}

// encodeRow appends one row, or the end.
func (r *copyReader) encodeRow() error {
	if len(r.rows) == 0 {
		r.buf = append(r.buf, 0xff, 0xff)
		r.ended = true
		return nil
	}
	r.buf = binary.BigEndian.AppendUint16(r.buf, uint16(len(r.columns)))
	for i, column := range r.columns {
		var ok bool
		if r.buf, ok = appendValue(r.buf, column.Type, r.rows[i]); !ok {
			return wrongType(column, r.rows[i])
		}
	}
	r.rows = r.rows[len(r.columns):]
	return nil
}

// appendValue appends the length of a value and the value, as rows and arrays have it.
func appendValue(buf []byte, t driver.Type, value any) (_ []byte, ok bool) {
	switch t {
	case driver.Int:
		var n int64
		n, ok = value.(int64)
		buf = appendInt(buf, n)
	case driver.Uint:
		var n uint64
		n, ok = value.(uint64)
		buf = appendInt(buf, int64(n^1<<63)) // as sqlstore.Biased stores it
	case driver.Text:
		var s string
		s, ok = value.(string)
		buf = append(binary.BigEndian.AppendUint32(buf, uint32(len(s))), s...)
	case driver.Blob:
		var b []byte
		b, ok = value.([]byte)
		buf = append(binary.BigEndian.AppendUint32(buf, uint32(len(b))), b...)
	}
	return buf, ok
}

func appendInt(buf []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(buf, 8), uint64(n))
}
