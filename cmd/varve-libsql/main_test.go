package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli/clitest"
	"github.com/varvedb/varve/testdata"
)

var must = clitest.Must

func TestMain(m *testing.M) { os.Exit(clitest.Main(m)) }

func url(t *testing.T) string { return "libsql://" + filepath.Join(t.TempDir(), "varve.db") }

func TestImport(t *testing.T) {
	dst := url(t)
	for _, src := range []string{"blocks.tar", "sqlite-store.db"} {
		require.Contains(t, must(t, "import", "../../testdata/arkiv-small/"+src, dst), "digest "+testdata.ArkivDigest)
	}
	require.Equal(t, "605\n", must(t, "query", dst, "*", "--count"))
}

// TestSeedIsThatOfOtherEngines: cmd/varve tests the same seed on the others.
func TestSeedIsThatOfOtherEngines(t *testing.T) {
	dst := url(t)
	require.Contains(t, must(t, "import", "mendoza:scale=0.001", dst), "digest "+seedDigest)
}

// seedDigest is that of mendoza at scale 0.001 with seed 1; testdata of package scaler has it too.
const seedDigest = "f1fc65ad99e1587c59f799d1d0851d6795561be0e87ace42ca1900ff28c4bcad"
