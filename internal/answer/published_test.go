package answer_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	unseen = regexp.MustCompile(`<!--.*?-->`)

	// nextBest is the end of a sentence whose best candidate is SQLite with compact.
	nextBest = regexp.MustCompile(`sqlite compact .*; (?:next is|not told apart from|too few runs to tell it from) (\w+) compact (?:with )?(?:(\d+) % fewer|as many)`)
)

// README's table begins each row with the number of its question. A cell has how
// many times better SQLite with compact is than the database at the head of its
// column. varve answer names the same database as the next best, at the same
// distance: "25 % fewer rows/s" is 1.33 times. A star marks figures of another set.
func TestPublished(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	readme := unseen.ReplaceAllString(string(text), "")
	var heads []string
	rows := make(map[string][]string) // the first row of each question
	for line := range strings.Lines(readme) {
		cells := strings.Split(line, "|")
		switch number, _, _ := strings.Cut(cells[min(1, len(cells)-1)], "."); {
		case strings.Contains(line, "| than "):
			heads = cells
		case heads != nil && len(cells) == len(heads) && rows[strings.TrimSpace(number)] == nil:
			rows[strings.TrimSpace(number)] = cells
		}
	}
	judged := 0
	for _, q := range of(t, "../../docs/results/ratios").Questions {
		switch {
		case q.ID == "5":
			require.Contains(t, readme, "No database did all that Arkiv asks")
			require.NotContains(t, q.Sentence, "carries 9 of the 9")
			continue
		case strings.HasPrefix(q.Sentence, "Not known"), strings.HasPrefix(q.Sentence, "Cannot be judged"):
			require.Contains(t, strings.Join(rows[q.ID], ""), "*", q.Sentence)
			continue
		}
		judged++
		next := nextBest.FindStringSubmatch(q.Sentence)
		require.NotNil(t, next, q.Sentence)
		fewer, _ := strconv.ParseFloat(next[2], 64) // "" is as many
		for i, head := range heads {
			if !strings.Contains(head, "than ") {
				continue
			}
			cell, _, _ := strings.Cut(strings.TrimSpace(rows[q.ID][i]), " ")
			times, err := strconv.ParseFloat(cell, 64)
			switch {
			case strings.EqualFold(strings.TrimSpace(head), "than "+next[1]):
				require.NoError(t, err)
				require.InEpsilon(t, 1/(1-fewer/100), times, 0.05, "%s\n%s", q.Sentence, rows[q.ID])
			case err == nil:
				require.GreaterOrEqual(t, times, 0.95/(1-fewer/100), "%s is next: %s", head, q.Sentence)
			}
		}
	}
	require.NotZero(t, judged)
}
