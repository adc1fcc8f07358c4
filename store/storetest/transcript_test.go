package storetest

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/storetest/model"
)

var update = flag.Bool("update", false, "rewrite testdata/transcript.txt from the model")

// TestTranscript holds the golden transcript to the model, from which it comes.
func TestTranscript(t *testing.T) {
	var text strings.Builder
	text.WriteString("The answers of model.Model to the script of storetest.RunTranscript.\n" +
		"Rewrite with: go test ./store/storetest -run Transcript -update\n")
	for _, headOnly := range []bool{false, true} {
		text.WriteString("\n" + sectionTitle(headOnly))
		text.WriteString(playScript(modelSubject{&model.Model{HeadOnly: headOnly}}, headOnly))
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/transcript.txt", []byte(text.String()), 0o644))
		return
	}
	requireTranscript(t, golden, text.String())
}

// TestTranscriptCovers checks that the script asks about enough.
func TestTranscriptCovers(t *testing.T) {
	section := goldenSection(false)
	for part, least := range map[string]int{
		"\napply ": 50, "\nquery ": 200, "\nget ": 50, "\nrewind ": 6, "\nprune ": 4, "page: ": 200,
		": ok; head": 50, "block order": 1, "block range": 3, "not found; head": 1, "not found": 5,
		" not in (": 3, " in (": 5, " ~ ": 5, " !~ ": 3, " && ": 20, " || ": 10, "!(": 10, "descending true": 20, ", by ": 50,
		"$owner": 3, "$key": 3, "$creator": 3, "$expiration": 3, "$createdAtBlock": 3, "$lastModifiedAtBlock": 3, "$sequence": 3,
		"9223372036854775808": 1, "18446744073709551615": 1, "9223372036854775807": 1,
	} {
		require.GreaterOrEqual(t, strings.Count(section, part), least, "%q", part)
	}
	require.Contains(t, goldenSection(true), ": unsupported")
}
