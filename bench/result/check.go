package result

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Check tells what keeps a record from being stored: a name that would be read
// back as another one, or a figure that is not a number. JSON has no word for
// the latter, and a figure that divides by nothing is a mistake of the workload.
func (r *Record) Check() error {
	if err := checkWord("experiment", r.Experiment); err != nil {
		return err
	}
	if err := checkName(r.Name); err != nil {
		return err
	}
	if err := r.Config.Check(); err != nil {
		return err
	}
	if r.Repeat < 0 {
		return fmt.Errorf("repeat %d: count from 0", r.Repeat)
	}
	for _, m := range r.Metrics {
		if err := m.check(); err != nil {
			return err
		}
	}
	for i := range r.Latencies {
		if r.Latencies[i].Kind == "" {
			return errors.New("latencies: name the kind of operation")
		}
	}
	return r.Table.check()
}

// Check tells which key or value of a config cannot be part of a benchmark's
// name: keys are words of their own, values may be empty, and neither has a
// space, a slash or an equals sign.
func (c Config) Check() error {
	seen := make(map[string]bool, len(c))
	for _, p := range c {
		if err := checkWord("key", p.Key); err != nil {
			return fmt.Errorf("config: %w", err)
		}
		if i := strings.IndexFunc(p.Value, special); i >= 0 {
			return fmt.Errorf("config: %s has the value %q: leave out spaces, slashes and equals signs", p.Key, p.Value)
		}
		if seen[p.Key] {
			return fmt.Errorf("config: key %q is there twice", p.Key)
		}
		seen[p.Key] = true
	}
	return nil
}

// special tells runes that separate the parts of names from others.
func special(r rune) bool {
	return r == '/' || r == '=' || r == utf8.RuneError || unicode.IsSpace(r) || unicode.IsControl(r)
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

// checkName holds names to what the testing package accepts after "Benchmark".
func checkName(name string) error {
	if err := checkWord("name", name); err != nil {
		return err
	}
	if first, _ := utf8.DecodeRuneInString(name); unicode.IsLower(first) {
		return fmt.Errorf("name %q: begin with a capital, as in BenchmarkCommit", name)
	}
	if base, _ := cutProcs(name); base != name {
		return fmt.Errorf("name %q: a number after a dash is read as GOMAXPROCS", name)
	}
	return nil
}

func (m Metric) check() error {
	if m.Unit == "" || strings.ContainsFunc(m.Unit, unicode.IsSpace) {
		return fmt.Errorf("metric: unit %q: name it, without spaces", m.Unit)
	}
	if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
		return fmt.Errorf("metric %s is %v: leave it out when there is nothing to divide by", m.Unit, m.Value)
	}
	return nil
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
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("table: row %d: %s is %v", i, t.Columns[j], v)
			}
		}
	}
	return nil
}
