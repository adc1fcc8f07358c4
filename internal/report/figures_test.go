package report_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/schemas"
)

const digits = `(?:≥ \d+ s|\d+(?:,\d{3})*(?:\.\d+)?[KMG]?†?)`

var (
	// reference is a figure in a sentence: a comment names a line of the
	// results, and its digits follow. The words are the set, the experiment,
	// values that select the line, the unit, and perhaps another statistic in
	// place of the median:
	//
	//	<!-- = answers D1 sqlite compact 1x rate=max settled-rows/s -->276K
	//	<!-- = answers D1 sqlite compact 1x rate=max settled-rows/s range -->275K–308K
	//	<!-- = answers D1 sqlite compact 1x rate=max settled-rows/s n -->1
	//	<!-- = answers D1 sqlite compact 1x rate=max settled-rows/s / arkiv -->20
	//	<!-- = answers D1 sqlite compact 1x rate=max settled-rows/s / arkiv range -->19–21
	//
	// The last two are ratios. Behind the stroke stands what differs in the divisor.
	reference = regexp.MustCompile(`(<!-- = ([^<>]+?) -->)(?:` + digits + `(?:–` + digits + `)?)?`)

	figure = regexp.MustCompile(`^` + digits + `$`)

	// exempt lists what may have numbers without a result, and before the colon why: "asked", "published", "other".
	exempt = regexp.MustCompile(`(?s)<!-- (?:asked|published|other): (.+?) -->`)

	// unread is not of sentences: comments, generated tables, code, headings, where links lead to, and names with a number.
	unread = regexp.MustCompile("(?s)```.*?```|<!-- table:.*?<!-- /table:[^>]*>|<!--.*?-->|(?m:^#[^\n]*)|`[^`]*`|\\]\\([^)]*\\)|\\b(?:ADR|Go|Experiments?) [\\d.]+(?: (?:to|and) \\d+)?")

	number  = regexp.MustCompile(`\b\d+(?:[.,]\d+)*[\w†]*`)
	inWords = regexp.MustCompile(`(?i)\b(?:half|twice|(?:third|quarter|fifth|tenth|hundredth)s? (?:of|as|more|fewer|less|longer)|\w+ times (?:as|more|fewer|less|longer))\b`)
	size    = regexp.MustCompile(`^([\d.]+)x$`)
)

// figure returns what stands behind a reference.
func (r *results) figure(text string) (string, error) {
	text, ranged := strings.CutSuffix(text, " range")
	text, counted := strings.CutSuffix(text, " n")
	dividend, divisor, ratio := strings.Cut(text, " / ")
	words := strings.Fields(dividend)
	if len(words) < 3 {
		return "", errors.New("a set, an experiment and a unit are needed")
	}
	s, err := r.set(words[0])
	if err != nil {
		return "", err
	}
	unit := words[len(words)-1]
	keys := map[string]string{"experiment": words[1]}
	one, above, err := find(s, keys, words[2:len(words)-1], unit)
	if err != nil {
		return "", err
	}
	if !ratio {
		center, _, _ := strings.Cut(above.String(), " (")
		switch {
		case above.Hosts > 1 && (keys["/engine"] != engine.Reference() || keys["/layout"] != schemas.DefaultLayout):
			return "", fmt.Errorf("it is of %d hosts: only the reference has figures of several, others have ratios", above.Hosts)
		case counted:
			return strconv.Itoa(above.N), nil
		case ranged:
			return between(report.Number(above.Lo), report.Number(above.Hi))
		case !figure.MatchString(center):
			return "", errors.New("it has no figure, but " + center)
		}
		return center, nil
	}
	two, below, err := find(s, keys, strings.Fields(divisor), unit)
	if err != nil {
		return "", err
	}
	if pair := report.Pair(above, below); pair != nil { // the same as in tables, where sittings have both
		switch {
		case pair.Median < 1:
			return "", fmt.Errorf("the larger figure stands first; this is %.2g", pair.Median)
		case counted:
			return strconv.Itoa(pair.Sittings), nil
		case ranged:
			return between(rounded(pair.Min), rounded(pair.Max))
		}
		return rounded(pair.Median), nil
	}
	hosts, err := s.Table(report.View{Filter: "(" + one + ") OR (" + two + ")", Rows: "host", Columns: report.Columns("", unit)})
	if err != nil {
		return "", err
	}
	factor := above.Center / below.Center
	if len(hosts.Rows) != 1 || factor < 1 || counted || ranged {
		return "", fmt.Errorf("a ratio of no common sitting is of one host and has no range, and the larger figure stands first; "+
			"this is %.2g, of %d", factor, len(hosts.Rows))
	}
	return rounded(factor), nil
}

// between is a range.
func between(low, high string) (string, error) {
	if low == high {
		return "", errors.New("it has no range, but one value")
	}
	return low + "–" + high, nil
}

// rounded is a ratio with two digits, because two runs differ by more.
func rounded(factor float64) string {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(factor, 'g', 2, 64), 64) // it is a number's text
	return report.Number(v)
}

// find returns the filter and the figure of the line that keys and further words name. It adds these to the keys.
func find(s *report.Set, keys map[string]string, words []string, unit string) (string, *report.Figure, error) {
	for _, w := range words {
		key, value, pair := strings.Cut(w, "=")
		scale := size.FindStringSubmatch(w)
		named := []string{"/engine", "/layout", "/mix"}
		at := slices.IndexFunc(named, func(k string) bool { return slices.Contains(s.Values(k[1:]), w) })
		switch {
		case pair && (key == "host" || key == "sitting"):
			keys[key] = value
		case pair:
			keys["/"+key] = value
		case scale != nil:
			keys["/scale"] = scale[1]
		case at >= 0:
			keys[named[at]] = w
		default:
			return "", nil, fmt.Errorf("%s is no engine, layout or mix of the set", w)
		}
	}
	var filter string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		filter += fmt.Sprintf("%s:%q ", key, keys[key])
	}
	t, err := s.Table(report.View{Filter: filter, Rows: ".fullname", Columns: report.Columns("", unit)})
	if err != nil {
		return "", nil, err
	}
	var rows []string
	for _, row := range t.Rows {
		if name := row[0].String(); !slices.Contains(rows, name) { // without a reference each host has a row
			rows = append(rows, name)
		}
	}
	if len(rows) != 1 {
		return "", nil, fmt.Errorf("it names %d rows, and has to name one: %s", len(rows), strings.Join(rows, ", "))
	}
	f, err := s.Figure(filter, unit)
	return filter, f, err
}

// refer returns a document with the digits of its references as the results have them.
func (r *results) refer(text string) (string, error) {
	var problems []error
	text = reference.ReplaceAllStringFunc(text, func(was string) string {
		at := reference.FindStringSubmatch(was)
		if r.written[at[1]] == "" {
			figure, err := r.figure(at[2])
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", at[1], err))
			}
			r.written[at[1]] = at[1] + figure
		}
		return r.written[at[1]]
	})
	return text, errors.Join(problems...)
}

// sentences blanks everything but sentences.
func sentences(text string) string {
	return unread.ReplaceAllStringFunc(text, func(not string) string { return strings.Repeat(" ", len(not)) })
}

// bare finds the numbers of a document that are in no reference, no table that a test writes,
// and in no list of phrases whose numbers no result has. Nor is anything listed that is not there.
func bare(text string) (problems []string) {
	prose := sentences(reference.ReplaceAllString(place.ReplaceAllString(text, ""), " § "))
	prose = strings.Join(strings.Fields(prose), " ")
	for _, list := range exempt.FindAllStringSubmatch(text, -1) {
		for phrase := range strings.SplitSeq(list[1], ";") {
			words := strings.Join(strings.Fields(phrase), " ")
			is := regexp.MustCompile(`\b` + regexp.QuoteMeta(words) + `(?:\b|$)`)
			if rest := is.ReplaceAllString(prose, "§"); rest != prose {
				prose = rest
			} else {
				problems = append(problems, fmt.Sprintf("no sentence has %q, which is on a list", words))
			}
		}
	}
	for _, of := range []*regexp.Regexp{number, inWords} {
		for _, at := range of.FindAllStringIndex(prose, -1) {
			problems = append(problems, fmt.Sprintf("…%s…: %q refers to no result; write <!-- = SET EXPERIMENT … UNIT --> before it, or leave it out",
				prose[max(0, at[0]-60):min(len(prose), at[1]+30)], prose[at[0]:at[1]]))
		}
	}
	return problems
}

// The figures in sentences of documents agree with the results, and no other
// figure stands there.
func TestFigures(t *testing.T) {
	for _, name := range documents {
		text := document(t, name)
		want, err := published.refer(text)
		require.NoError(t, err, name)
		agrees(t, name, want)
		for _, p := range bare(want) {
			t.Errorf("%s: %s", name, p)
		}
	}
}

// Whichever number of the documents is changed by 30 %, a test notices.
func TestFiguresChanged(t *testing.T) {
	const samples = 300 // of a document; all take a quarter of a minute
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range documents {
		text := document(t, name)
		noticed := func(text string) bool {
			want, err := published.refer(published.write(t, text))
			return err != nil || want != text || len(bare(text)) > 0
		}
		require.False(t, noticed(text), name)
		places := number.FindAllStringIndex(sentences(text), -1)
		require.Greater(t, len(places), 40, name)
		random.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
		for _, at := range places[:min(len(places), samples)] {
			was := text[at[0]:at[1]]
			parts := regexp.MustCompile(`^([\d.,]+)(.*)$`).FindStringSubmatch(was)
			value, err := strconv.ParseFloat(strings.ReplaceAll(parts[1], ",", ""), 64)
			require.NoError(t, err, was)
			factor := 1.3
			if random.IntN(2) == 0 {
				factor = 0.7
			}
			changed := report.Number(value*factor) + parts[2]
			if changed != was && !noticed(text[:at[0]]+changed+text[at[1]:]) { // 30 % of 0 is 0
				t.Errorf("%s: %s is changed to %s at byte %d, and no test notices", name, was, changed, at[0])
			}
		}
	}
}

// A reference names one line of the results, whose figure stands behind it.
func TestReference(t *testing.T) {
	for text, want := range map[string]string{
		"answers D1 sqlite compact 1x rate=max settled-rows/s":         "276K",
		"answers D1 sqlite compact 1x rate=max settled-rows/s range":   "275K–308K",
		"answers D1 sqlite compact 1x rate=max settled-rows/s n":       "1",
		"answers D1 sqlite compact 1x rate=max settled-rows/s / arkiv": "20",
	} {
		is, err := published.figure(text)
		require.NoError(t, err)
		require.Equal(t, want, is, text)
	}
	for text, want := range map[string]string{
		"answers D1": "a set, an experiment and a unit are needed",
		"none D1 x":  "no such file",
		"answers D1 sqlite compact 1x rate=6001 p99-ms":                      "names 0 rows",
		"answers D1 sqlite compact 1x rate=6000 p98-ms":                      "names 0 rows",
		"answers D1 sqlite compact 1x p99-ms":                                "names 2 rows",
		"answers D1 mysql compact 1x rate=max p99-ms":                        "mysql is no engine, layout or mix",
		"answers D1 sqlite arkiv 1x rate=max settled-rows/s / compact":       "the larger figure stands first",
		"hour D1 sqlite compact 5x rate=6000 p99-ms range":                   "it has no range, but one value",
		"answers D1 sqlite compact 1x rate=max settled-rows/s / clients=999": "names 0 rows",
	} {
		_, err := published.figure(text)
		require.ErrorContains(t, err, want, text)
	}
}

// A number that refers to no result is refused, unless it is listed with the words around it.
func TestBare(t *testing.T) {
	for text, want := range map[string]int{
		"It takes 5 ms.":                                                            1,
		"It answers 1,914 with it.":                                                 1,
		"It is 3.4x as fast, and takes half of the room.":                           2,
		"It is twenty times as fast.":                                               1,
		"It takes <!-- = answers D1 p99-ms -->5.1 ms, or 6.":                        1,
		"At p99 of A5, `go1.26` and [it](it-1.md).":                                 0,
		"# 1. Most\n\nIt took 6 s.\n\n```sh\nsleep 5\n```":                          1,
		"6,000 rows a\nsecond. <!-- asked: 6,000 rows a second -->":                 0,
		"16,000 rows a second, <!-- asked: 6,000 rows a second -->":                 2,
		"6,000 rows. <!-- asked: 6,000 rows; 1 GiB -->":                             1,
		"<!-- result answers 1 1 -->\nn=3 each\n\n| 1 |\n|--|\n| 276K |\n":          0,
		"<!-- table:layouts -->\n| 13 |\n<!-- /table:layouts -->\n| 14 |":           1,
		"Arkiv has 714 entities/s. <!-- published: 714 entities/s; 85 entities -->": 1,
	} {
		require.Len(t, bare(text), want, text)
	}
}
