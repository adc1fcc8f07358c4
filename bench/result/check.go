package result

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// check tells what keeps a record from being stored: a name that would be read
// back as another one, or a figure that is not a number. JSON has no word for
// the latter, and a figure that divides by nothing is a mistake of the workload.
func (r *Record) check() error {
	err := errors.Join(checkWord("experiment", r.Experiment), checkWord("name", r.Name), r.Config.check(), r.Table.check())
	first, _ := utf8.DecodeRuneInString(r.Name)
	switch {
	case err != nil:
		return err
	case unicode.IsLower(first):
		return fmt.Errorf("name %q: begin with a capital, as in BenchmarkCommit", r.Name)
	case endsInProcs(r.Name):
		return fmt.Errorf("name %q: a number after a dash is read as GOMAXPROCS", r.Name)
	case r.Repeat < 0:
		return fmt.Errorf("repeat %d: count from 0", r.Repeat)
	case slices.ContainsFunc(r.Latencies, func(d Distribution) bool { return d.Kind == "" }):
		return errors.New("latencies: name the kind of operation")
	}
	for _, m := range r.Metrics {
		if m.Unit == "" || strings.ContainsFunc(m.Unit, unicode.IsSpace) {
			return fmt.Errorf("metric: unit %q: name it, without spaces", m.Unit)
		}
		if !finite(m.Value) {
			return fmt.Errorf("metric %s is %v: leave it out when there is nothing to divide by", m.Unit, m.Value)
		}
	}
	return nil
}

// check tells which key or value of a config cannot be part of a benchmark's
// name: keys are words of their own, values may be empty, and neither has a
// space, a slash or an equals sign.
func (c Config) check() error {
	seen := make(map[string]bool, len(c))
	for _, p := range c {
		if err := checkWord("config: key", p.Key); err != nil {
			return err
		}
		if strings.ContainsFunc(p.Value, special) {
			return fmt.Errorf("config: %s has the value %q: leave out spaces, slashes and equals signs", p.Key, p.Value)
		}
		if seen[p.Key] {
			return fmt.Errorf("config: key %q is there twice", p.Key)
		}
		seen[p.Key] = true
	}
	return nil
}

func checkWord(what, word string) error {
	if word == "" {
		return fmt.Errorf("%s is empty", what)
	}
	if strings.ContainsFunc(word, special) {
		return fmt.Errorf("%s %q: leave out spaces, slashes and equals signs", what, word)
	}
	return nil
}

// special tells runes that separate the parts of names from others.
func special(r rune) bool {
	return r == '/' || r == '=' || r == utf8.RuneError || unicode.IsSpace(r) || unicode.IsControl(r)
}

func (t *Table) check() error {
	if t == nil {
		return nil
	}
	for i, row := range t.Rows {
		if len(row) != len(t.Columns) {
			return fmt.Errorf("table: row %d has %d values for %d columns", i, len(row), len(t.Columns))
		}
		for j, v := range row {
			if !finite(v) {
				return fmt.Errorf("table: row %d: %s is %v", i, t.Columns[j], v)
			}
		}
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
