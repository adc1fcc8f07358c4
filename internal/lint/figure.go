package lint

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// figure is a number with what it may be off by rounding.
type figure struct{ value, half float64 }

var (
	tableRow = regexp.MustCompile(`(?m)^\|.*$`)
	// written is a number in a sentence or a table, with thousands apart and K or M behind it.
	written = regexp.MustCompile(`\d+(?:,\d{3})*(?:\.\d+)?[KM]?`)
	// unit is what makes a number of a sentence a measurement.
	unit = regexp.MustCompile(`^(?: ?(?:%|×|ms\b|µs\b|MB\b|GB\b|s\b)| ?(?:rows|reads|entities|events|calls)(?:/s| a second)| times (?:as|the|those|its))`)
	// elsewhere is a comment that lists figures of a section that are in none of its tables.
	elsewhere = regexp.MustCompile(`<!-- not in a table: (.*?) -->`)
	// foreign is not ours to hold: commands, links, what others published, and conditions of a table.
	foreign = regexp.MustCompile("(?s)`[^`]*`|\\]\\([^)]*\\)|<!--.*?-->|\\*Published:\\*[^\\n]*|\\*\\*[^*\\n]+\\*\\*\\. (?:Medians|Single runs)[^\\n]*|(?m:^(?:Medians of|Single runs)[^\\n]*)")
)

// CheckFigures holds figures in the sentences of a document against the tables of their section: a
// number with a unit of measurement has to stand in one of them, as it was rounded. A thousandth
// and a thousand of it count too, as for seconds and milliseconds. What is in no table is listed in
// a comment of the section, "not in a table: 9.2 9.8", and nothing is listed that is not there.
func CheckFigures(path string, document []byte) (problems []Problem) {
	line := 1
	for section := range strings.SplitAfterSeq(string(document), "\n## ") {
		var tables []figure
		var allowed []string
		sentences := tableRow.ReplaceAllStringFunc(section, func(row string) string {
			for _, t := range written.FindAllString(row, -1) {
				tables = append(tables, read(t))
			}
			return ""
		})
		for _, m := range elsewhere.FindAllStringSubmatch(section, -1) {
			allowed = append(allowed, strings.Fields(m[1])...)
		}
		sentences = foreign.ReplaceAllStringFunc(sentences, func(q string) string {
			return strings.Repeat("\n", strings.Count(q, "\n")) // the lines keep their numbers
		})
		used := make(map[string]bool)
		for i, row := range strings.Split(sentences, "\n") {
			for _, at := range written.FindAllStringIndex(row, -1) {
				text := row[at[0]:at[1]]
				if !unit.MatchString(row[at[1]:]) || slices.ContainsFunc(tables, read(text).is) {
					continue
				}
				if used[text] = true; !slices.Contains(allowed, text) {
					problems = append(problems, Problem{path, line + i, text + " is in no table of its section; correct it, " +
						"or list it in a comment <!-- not in a table: … --> with its source in the sentence"})
				}
			}
		}
		for _, a := range allowed {
			if !used[a] {
				problems = append(problems, Problem{path, line, a + " is listed as not in a table, and no sentence of the section needs that"})
			}
		}
		line += strings.Count(section, "\n")
	}
	return problems
}

// read parses a number that written matches.
func read(text string) figure {
	digits := strings.ReplaceAll(strings.TrimRight(text, "KM"), ",", "")
	scale := map[byte]float64{'K': 1e3, 'M': 1e6}[text[len(text)-1]]
	scale = max(scale, 1)
	value, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		value = math.NaN()
	}
	_, fraction, _ := strings.Cut(digits, ".")
	return figure{value * scale, scale * math.Pow(10, -float64(len(fraction))) / 2}
}

// is tells whether a figure of a table can be this one, rounded or in another unit.
func (f figure) is(table figure) bool {
	return slices.ContainsFunc([]float64{1, 1000, 0.001}, func(scale float64) bool {
		return math.Abs(f.value*scale-table.value) <= 1.001*max(f.half*scale, table.half)
	})
}
