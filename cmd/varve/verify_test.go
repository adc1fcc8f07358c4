package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
)

// TestVerifyReadsWhatItNeeds: data centres are asked their questions, at the
// head and at two past blocks, and only other data has its distributions read.
func TestVerifyReadsWhatItNeeds(t *testing.T) {
	const distributions = "verify: distributions"
	dc, mendoza := url(t, "dc.db"), url(t, "mendoza.db")
	must(t, "seed", "dc", dc, "--scale=0.001", "--load=4")
	must(t, "seed", "mendoza", mendoza, "--scale=0.001")

	out, errs, code := varve(t, "verify", dc)
	require.Equal(t, cli.ExitOK, code, out)
	require.NotContains(t, errs, distributions)
	require.Equal(t, 3, strings.Count(out, "ok     answers at block "), out)

	out, errs, code = varve(t, "verify", mendoza)
	require.Equal(t, cli.ExitOK, code, out)
	require.Contains(t, errs, distributions)
	require.NotContains(t, out, "answers at block")
}
