package scaler_test

import (
	"bytes"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
	"github.com/varvedb/varve/testdata"
)

// TestScaleArkiv scales real blocks: they have gaps, empty blocks, one key used
// several times in a block, and expirations that no Expire follows.
func TestScaleArkiv(t *testing.T) {
	src := func() iter.Seq2[entity.Block, error] { return feed.ReadTar(bytes.NewReader(testdata.ArkivBlocks)) }
	want, err := scaler.Collect(src())
	require.NoError(t, err)
	require.Equal(t, uint64(800), want.Entities)
	for _, m := range []scaler.Method{scaler.Hybrid, scaler.Duplicate, scaler.Temporal} {
		for _, factor := range []uint64{2, 5} {
			t.Run(fmt.Sprintf("method=%s/factor=%d", m, factor), func(t *testing.T) {
				scaled := scaler.Scale(src, scaler.ScaleOptions{Method: m, Factor: factor})
				got, err := scaler.Collect(scaled)
				require.NoError(t, err)
				for kind, n := range want.Ops {
					require.Equal(t, factor*n, got.Ops[kind], entity.Kind(kind))
				}
				require.Empty(t, scaler.Rejected(scaler.Compare(got, want, nil), 0.01))

				keys := map[entity.Key]bool{}
				var last uint64
				for b, err := range scaled {
					require.NoError(t, err)
					require.NoError(t, b.Validate())
					last = b.Number
					for _, op := range b.Ops {
						keys[op.Key] = true
					}
				}
				require.Equal(t, int(factor)*800, len(keys))
				if m == scaler.Duplicate {
					require.Equal(t, uint64(1263), last)
				} else {
					require.Equal(t, 1263+(factor-1)*263, last)
				}
			})
		}
	}
}
