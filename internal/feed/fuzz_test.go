package feed

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// FuzzReadTar feeds damaged tars under small limits: no input may panic, give
// a block that is not valid or out of order, or give an error of no format.
// What is read can be written and read again.
func FuzzReadTar(f *testing.F) {
	f.Add(writeTar(f, sampleBlocks()))
	f.Add(makeTar(f, block("1", createLine), block("2", ""), block("3", deleteLine+extendLine)))
	f.Add(makeTar(f, entry{name: "block-1.json.zst", raw: createLine}))
	f.Add(makeTar(f))
	lim := limits{entry: 1 << 20, line: 1 << 17, window: 1 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		var blocks []entity.Block
		for b, err := range readTar(bytes.NewReader(data), lim) {
			if err != nil {
				require.ErrorIs(t, err, ErrFormat)
				break
			}
			require.NoError(t, b.Validate())
			if n := len(blocks); n > 0 {
				require.Greater(t, b.Number, blocks[n-1].Number)
			}
			blocks = append(blocks, b)
		}
		require.Equal(t, blocks, collect(t, ReadTar(bytes.NewReader(writeTar(t, blocks)))))
	})
}
