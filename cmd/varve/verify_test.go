package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
)

// TestVerifyGenerated: what was generated is compared with what the generator makes, and a
// store with a source: the first entity that is another is named.
func TestVerifyGenerated(t *testing.T) {
	dc := url(t, "dc.db")
	must(t, "seed", "dc", dc, "--scale=0.0005", "--load=4")
	require.Contains(t, must(t, "verify", dc), "ok     entities: 600 are as they were created")
	for source, says := range map[string]string{
		"dc:scale=0.0005,seed=2,load=4": "FAILED entities: 0 are right, then the store has 0x",
		"dc:scale=0.0004,load=4":        "FAILED entities: ",
	} {
		out, _, code := varve(t, "verify", dc, "--against", source)
		require.Equal(t, cli.ExitError, code, out)
		require.Contains(t, out, says)
	}
	forgetful := url(t, "simple.db") + "?layout=simple"
	must(t, "seed", "mendoza", forgetful, "--scale=0.0001")
	out, _, code := varve(t, "verify", forgetful)
	require.Equal(t, cli.ExitNotChecked, code, out)
	require.Contains(t, out, "layout simple does not keep them as they were created")
}
