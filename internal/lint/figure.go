package lint

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// figure is a number as it is written, with what it may be off by rounding.
type figure struct {
	text        string
	value, half float64
}

var (
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
	for _, section := range bytes.SplitAfter(document, []byte("\n## ")) {
		var tables []figure
		var sentences strings.Builder
		for row := range strings.Lines(string(section)) {
			if strings.HasPrefix(row, "|") {
				tables = append(tables, figures(row)...)
				row = "\n"
			}
			sentences.WriteString(row)
		}
		var allowed []string
		for _, m := range elsewhere.FindAllSubmatch(section, -1) {
			allowed = append(allowed, strings.Fields(string(m[1]))...)
		}
		used := make(map[string]bool)
		text := foreign.ReplaceAllStringFunc(sentences.String(), func(q string) string {
			return strings.Repeat("\n", strings.Count(q, "\n")) // the lines keep their numbers
		})
		for i, row := range strings.Split(text, "\n") {
			for _, at := range written.FindAllStringIndex(row, -1) {
				f := read(row[at[0]:at[1]])
				if !unit.MatchString(row[at[1]:]) || in(f, tables) {
					continue
				}
				if used[f.text] = true; !slices.Contains(allowed, f.text) {
					problems = append(problems, Problem{Path: path, Line: line + i,
						Message: fmt.Sprintf("%s is in no table of its section; correct it, or list it in a comment <!-- not in a table: … --> with its source in the sentence", f.text)})
				}
			}
		}
		for _, a := range allowed {
			if !used[a] {
				problems = append(problems, Problem{Path: path, Line: line, Message: a + " is listed as not in a table, and no sentence of the section needs that"})
			}
		}
		line += bytes.Count(section, []byte("\n"))
	}
	return problems
}

func figures(text string) (list []figure) {
	for _, t := range written.FindAllString(text, -1) {
		list = append(list, read(t))
	}
	return list
}

// read parses a number that written matches.
func read(text string) figure {
	digits := strings.ReplaceAll(strings.TrimRight(text, "KM"), ",", "")
	scale := 1.0
	switch {
	case strings.HasSuffix(text, "K"):
		scale = 1e3
	case strings.HasSuffix(text, "M"):
		scale = 1e6
	}
	value, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return figure{text: text, value: math.NaN()}
	}
	_, fraction, _ := strings.Cut(digits, ".")
	return figure{text, value * scale, scale * math.Pow(10, -float64(len(fraction))) / 2}
}

// in tells whether a table has a figure.
func in(f figure, tables []figure) bool {
	for _, t := range tables {
		for _, scale := range []float64{1, 1000, 0.001} {
			if math.Abs(f.value*scale-t.value) <= 1.001*max(f.half*scale, t.half) {
				return true
			}
		}
	}
	return false
}
