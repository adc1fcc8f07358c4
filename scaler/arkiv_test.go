package scaler_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
	"github.com/varvedb/varve/testdata"
)

// TestScaleArkiv scales real blocks: they have gaps, empty blocks, one key used
// several times in a block, and expirations that no Expire follows. Of each operation the
// result has as many as the factor says, alike in all but what identifies entities.
func TestScaleArkiv(t *testing.T) {
	src := func() iter.Seq2[entity.Block, error] { return feed.ReadTar(bytes.NewReader(testdata.ArkivBlocks)) }
	tally := func(blocks iter.Seq2[entity.Block, error]) (alike map[string]int, keys map[entity.Key]bool, last uint64) {
		alike, keys = map[string]int{}, map[entity.Key]bool{}
		for b, err := range blocks {
			require.NoError(t, err)
			require.NoError(t, b.Validate())
			last = b.Number
			for _, op := range b.Ops {
				keys[op.Key] = true
				texts := map[string]string{}
				for name, value := range op.StringAttributes {
					if len(value) < 64 { // or a key
						texts[name], _, _ = strings.Cut(value, "#")
					}
				}
				alike[fmt.Sprint(op.Kind, op.BTL, op.Owner, op.ContentType, sha256.Sum256(op.Content), texts, op.NumericAttributes)]++
			}
		}
		return alike, keys, last
	}
	want, keys, _ := tally(src())
	require.Len(t, keys, 800)
	for _, factor := range []uint64{2, 5} {
		got, keys, last := tally(scaler.Scale(src, scaler.ScaleOptions{Factor: factor}))
		require.Len(t, keys, int(factor)*800)
		require.Equal(t, len(want), len(got))
		for op, n := range want {
			require.Equal(t, int(factor)*n, got[op], op)
		}
		require.Equal(t, 1263+(factor-1)*263, last)
	}
}
