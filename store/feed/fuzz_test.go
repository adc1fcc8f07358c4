package feed

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// The layers that FuzzReadTar damages. Checksums of the outer layers keep a
// fuzzer from getting far into the inner ones.
const (
	fuzzTar   = iota // the data is the tar
	fuzzFrame        // it is the content of an entry
	fuzzLines        // it is compressed into an entry
)

// FuzzReadTar reads damaged input under small limits: no input may panic, give
// a block that is not valid or out of order, or give an error other than of
// format. The blocks that are read can be written and read again.
func FuzzReadTar(f *testing.F) {
	lines := createLine + deleteLine + ownerLine
	f.Add(uint8(fuzzTar), writeTar(f, sampleBlocks()))
	f.Add(uint8(fuzzTar), makeTar(f, block("1", createLine), block("2", ""), block("3", deleteLine)))
	f.Add(uint8(fuzzTar), makeTar(f))
	f.Add(uint8(fuzzFrame), compress(f, lines))
	f.Add(uint8(fuzzFrame), []byte(lines))
	f.Add(uint8(fuzzLines), []byte(lines))
	f.Add(uint8(fuzzLines), []byte(strings.Replace(createLine, `"op_index":2`, `"op_index":3`, 1)+createLine))
	f.Add(uint8(fuzzLines), bytes.Repeat([]byte(createLine), 50))
	f.Fuzz(func(t *testing.T, layer uint8, data []byte) {
		switch layer % 3 {
		case fuzzFrame:
			data = makeTar(t, block("6", ""), entry{name: "block-7.json.zst", raw: string(data)})
		case fuzzLines:
			data = makeTar(t, block("6", ""), block("7", string(data)))
		}
		var blocks []entity.Block
		lim := limits{entry: 1 << 20, line: 1 << 17, window: 1 << 20}
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
		if len(blocks) == 0 {
			return
		}
		require.Equal(t, blocks, collect(t, ReadTar(bytes.NewReader(writeTar(t, blocks)))))
	})
}
