package rowfile

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

var someTable = &driver.Table{Name: "t", Columns: []driver.Column{
	{Name: "i", Type: driver.Int}, {Name: "u", Type: driver.Uint}, {Name: "s", Type: driver.Text}, {Name: "b", Type: driver.Blob},
}}

func someFile(t testing.TB) []byte {
	var buf bytes.Buffer
	w, err := NewWriter(&buf, []byte("head"))
	require.NoError(t, err)
	require.NoError(t, w.Table(&driver.Table{Name: "empty"}))
	require.NoError(t, w.Table(someTable))
	for _, i := range []int64{0, -1, math.MinInt64, math.MaxInt64} {
		u, s, b := uint64(i), []byte("a\x00b"), []byte{}
		require.NoError(t, w.Row([]any{&i, &u, &s, &b}))
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

func readAll(file []byte) (rows [][]any, err error) {
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		_, row, err := r.Next()
		if errors.Is(err, io.EOF) && !errors.Is(err, ErrFormat) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
}

func TestRoundTrip(t *testing.T) {
	r, err := NewReader(bytes.NewReader(someFile(t)))
	require.NoError(t, err)
	require.Equal(t, "head", string(r.Head))
	r.Close()
	rows, err := readAll(someFile(t))
	require.NoError(t, err)
	var want [][]any
	for _, i := range []int64{0, -1, math.MinInt64, math.MaxInt64} {
		want = append(want, []any{i, uint64(i), "a\x00b", []byte{}})
	}
	require.Equal(t, want, rows)
}

// TestDamage: a file that is cut or has a byte changed is not read as a whole one with other rows.
func TestDamage(t *testing.T) {
	file := someFile(t)
	good, err := readAll(file)
	require.NoError(t, err)
	for n := range file {
		_, err := readAll(file[:n])
		require.Error(t, err, "cut at %d", n)
		changed := bytes.Clone(file)
		changed[n] ^= 0x10
		if rows, err := readAll(changed); err == nil {
			require.Equal(t, good, rows, "byte %d", n)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(someFile(f))
	f.Fuzz(func(t *testing.T, file []byte) {
		rows, err := readAll(file)
		if err == nil && len(file) == 0 {
			t.Fatalf("%d rows of an empty file", len(rows))
		}
	})
}
