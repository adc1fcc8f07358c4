package packed_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/packed"
)

func TestReader(t *testing.T) {
	data := packed.AppendText(binary.AppendUvarint(nil, 300), "text")
	r := packed.Reader{Rest: append(data, 7)}
	require.EqualValues(t, 300, r.Uint())
	require.Equal(t, "text", string(r.Text()))
	require.Equal(t, []byte{7}, r.Bytes(1))
	require.False(t, r.Torn)
	require.Zero(t, r.Uint())
	require.True(t, r.Torn)
}

func TestReaderTorn(t *testing.T) {
	whole := packed.AppendText(nil, "text")
	for n := range whole {
		r := packed.Reader{Rest: whole[:n]}
		require.Empty(t, r.Text())
		require.True(t, r.Torn)
		require.Zero(t, r.Uint(), "after an error everything is zero")
		require.Nil(t, r.Bytes(1))
	}
	r := packed.Reader{Rest: binary.AppendUvarint(nil, 1<<40)}
	require.Zero(t, r.Count())
	require.True(t, r.Torn)
}
