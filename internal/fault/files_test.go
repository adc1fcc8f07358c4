package fault

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDraw: a fault is within a file that may be hit, and changes it; each file
// and each kind of fault is drawn.
func TestDraw(t *testing.T) {
	file := func(aim string, size int) imageFile {
		return imageFile{aim: aim, data: bytes.Repeat([]byte{1, 2, 3}, size)[:size]}
	}
	im := image{{mode: fs.ModeDir}, file("", 9), file("database", 1), file("log", 2), file("database", 3), file("log", 1)}
	random, files, kinds := rand.New(rand.NewPCG(1, 1)), map[int]bool{}, map[string]bool{}
	for range 1000 {
		f := im.draw(random)
		files[f.file], kinds[f.kind] = true, true
		data := im[f.file].data
		require.NotEmpty(t, im[f.file].aim)
		require.Less(t, f.offset, int64(len(data)))
		switch damaged := f.damaged(data); f.kind {
		case "cut":
			require.Equal(t, data[:f.offset], damaged)
		case "bit":
			require.NotEqual(t, data, damaged)
			require.Len(t, damaged, len(data))
		default:
			require.Len(t, damaged, len(data))
		}
	}
	require.Equal(t, map[int]bool{2: true, 3: true, 4: true, 5: true}, files)
	require.Len(t, kinds, 3)
}
