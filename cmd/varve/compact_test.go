package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/testdata"
)

// TestImportCompact moves a history into the layout compact and out of it again:
// the digest stays, and so do the answers.
func TestImportCompact(t *testing.T) {
	first, second, third := url(t, "a.db")+"?layout=arkiv", url(t, "c.db")+"?layout=compact", url(t, "b.db")+"?layout=arkiv"
	require.Contains(t, must(t, "import", arkiv+"blocks.tar", first), testdata.ArkivDigest)
	require.Contains(t, must(t, "import", first, second), testdata.ArkivDigest)
	require.Contains(t, must(t, "import", second, third), testdata.ArkivDigest)
	for _, store := range []string{first, second, third} {
		require.Contains(t, must(t, "verify", store), "computed anew", store)
		require.Equal(t, "605\n", must(t, "query", store, "*", "--count"), store)
		require.Equal(t, must(t, "query", first, `type = "node"`, "--limit", "5"), must(t, "query", store, `type = "node"`, "--limit", "5"))
	}
}
