package report

import (
	"bytes"
	"cmp"
	_ "embed" // documents.txt
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/result"
	"github.com/varvedb/varve/schemas"
)

// documents are published figures of other programs.
//
//go:embed documents.txt
var documents []byte

// Line is a line of a result file.
type Line = benchfmt.Result

// Lines are some lines of a set.
type Lines []*Line

// where returns the lines for which keep is true.
func (lines Lines) where(keep func(*Line) bool) (list Lines) {
	for _, l := range lines {
		if keep(l) {
			list = append(list, l)
		}
	}
	return list
}

// matching returns the lines that a filter matches.
func (lines Lines) matching(filter string) (Lines, error) {
	f, err := newFilter(filter)
	if err != nil {
		return nil, err
	}
	return lines.where(func(l *Line) bool {
		m, failed := f.Match(l)
		if failed != nil {
			err = failed
			return false
		}
		return m.Any()
	}), err
}

// newFilter parses a filter. Lines for single kinds of operations are left out
// unless it asks for kinds.
func newFilter(filter string) (*benchproc.Filter, error) {
	if filter == "" {
		filter = "*"
	}
	if !strings.Contains(filter, "/kind") {
		filter = "(" + filter + `) /kind:/^$/`
	}
	return benchproc.NewFilter(filter)
}

// each returns the distinct values of a function over the lines, in order.
func (lines Lines) each(of func(*Line) string) (list []string) {
	for _, l := range lines {
		list = appendNew(list, of(l))
	}
	return list
}

// by divides the lines by the values of a function, in order.
func (lines Lines) by(of func(*Line) string) (parts []Lines) {
	for _, value := range lines.each(of) {
		parts = append(parts, lines.where(func(l *Line) bool { return of(l) == value }))
	}
	return parts
}

// configured returns the distinct values of a configuration key, "" for lines
// without it.
func (lines Lines) configured(key string) []string {
	return lines.each(func(l *Line) string { return l.GetConfig(key) })
}

// disturbed counts the lines that were measured while the machine was not at
// rest.
func (lines Lines) disturbed() int {
	return len(lines.where(func(l *Line) bool { return l.GetConfig("machine-off") != "" }))
}

// Disturbance explains, once for a whole set, the mark †; "" if no line has it.
func (s *Set) Disturbance() string {
	n := s.Lines.disturbed()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("† marks %d of %d measurements, because the machine was not at rest: %s.", n, len(s.Lines), distinct(s.Lines, "machine-off")[0])
}

// having returns the lines with a figure in a unit.
func (lines Lines) having(unit string) Lines {
	return lines.where(func(l *Line) bool { _, has := l.Value(unit); return has })
}

// of returns the lines with a value of a key in their names.
func (lines Lines) of(key, value string) Lines {
	return lines.where(func(l *Line) bool { return Key(l, key) == value })
}

// with returns the lines with a value of a configuration key.
func (lines Lines) with(key, value string) Lines {
	return lines.where(func(l *Line) bool { return l.GetConfig(key) == value })
}

// Set has the lines of result files. Values have the units of figures in
// memory.
type Set struct {
	Name     string
	Lines    Lines // measurements that count
	Excluded Lines // measurements that do not count; configuration "excluded" has the reason
	Series   Lines // seconds of time lines and blocks of designed experiments
	Peers    Lines // other programs' figures
	Units    benchfmt.UnitMetadataMap
	Warnings []string // lines that could not be read
}

// Load reads a file in the Go benchmark format, or all *.txt files of a
// directory. It adds the published figures.
func Load(path string) (*Set, error) {
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		files, err = filepath.Glob(filepath.Join(path, "*.txt"))
		if err == nil && len(files) == 0 {
			err = fmt.Errorf("%s has no result files (*.txt); varve run writes them", path)
		}
		if err != nil {
			return nil, err
		}
	}
	s := &Set{Name: filepath.Base(path), Units: benchfmt.UnitMetadataMap{}}
	errs := []error{s.read(bytes.NewReader(documents), "documents.txt")}
	for _, name := range files {
		f, err := os.Open(name)
		if err == nil {
			err = errors.Join(s.read(f, filepath.Base(name)), f.Close())
		}
		errs = append(errs, err)
	}
	if len(s.Lines)+len(s.Excluded)+len(s.Series)+len(s.Warnings) == 0 {
		errs = append(errs, fmt.Errorf("%s has no benchmark lines; varve run writes them", path))
	}
	slices.SortStableFunc(s.Lines, func(a, b *Line) int { return engineOrder(a) - engineOrder(b) })
	s.markSlowMemory()
	return s, errors.Join(errs...)
}

// slowMemory is how many times its shortest time on a host a copy in memory
// takes on a machine that is not at rest. Virtual machines were seen where it
// took fifty times as long while nothing else ran in them and the processor was
// as fast as ever; engines were half as fast then (docs/results/README.md).
const slowMemory = 2

// markSlowMemory marks the measurements before which copying in memory was slow.
// The test before them cannot know, because it takes several tests to tell what
// the machine can do.
func (s *Set) markSlowMemory() {
	const unit = "copy-MB/s"
	speed := func(l *Line) float64 { v, _ := l.Value(unit); return v }
	// A test and the measurements after it have the same syncs in the manifest.
	part := func(l *Line) string { return runOf(l) + " " + Key(l, "engine") + " " + l.GetConfig("fsync-us") }
	slow := make(map[string]bool)
	for _, tests := range byHost(s.Lines.with("experiment", "M1").having(unit)) {
		best := slices.MaxFunc(tests, func(a, b *Line) int { return cmp.Compare(speed(a), speed(b)) })
		for _, l := range tests {
			slow[part(l)] = speed(l)*slowMemory < speed(best)
		}
	}
	for _, l := range s.Lines {
		if slow[part(l)] && l.GetConfig("machine-off") == "" {
			l.SetConfig("machine-off", fmt.Sprintf("copying in memory took more than %d times its shortest time on the host", slowMemory))
		}
	}
}

// read adds the lines of a file; name is for messages.
func (s *Set) read(r io.Reader, name string) error {
	units, err := result.Read(r, name, func(record benchfmt.Record) error {
		switch line := record.(type) {
		case *benchfmt.SyntaxError:
			s.Warnings = append(s.Warnings, line.Error())
		case *Line:
			s.add(line)
		}
		return nil
	})
	maps.Copy(s.Units, units)
	return err
}

// running matches the error of a killed process, which names the line that it
// was measuring.
var running = regexp.MustCompile(`^error: .*: \w+ (\S+/\S+), repeat \d+$`)

func (s *Set) add(line *Line) {
	if named := running.FindStringSubmatch(line.GetConfig("excluded")); named != nil {
		line.Name = benchfmt.Name(named[1])
	}
	switch base := string(line.Name.Base()); {
	case base == "Peer":
		s.Peers = append(s.Peers, line)
	case line.GetConfig("excluded") != "":
		s.Excluded = append(s.Excluded, line)
	case base == "Timeline" || base == "Block":
		s.Series = append(s.Series, line)
	default:
		s.Lines = append(s.Lines, line)
	}
}

// engineOrder orders engines as in the list, with the default layout of each first.
// Rows and columns of tables use this order, so the reference comes first.
func engineOrder(line *Line) int {
	at := 2 * slices.Index(append(engine.Names(), Key(line, "engine")), Key(line, "engine"))
	if Key(line, "layout") != schemas.DefaultLayout {
		at++
	}
	return at
}

// Key returns the value of a key in the name of a line, "" when it has none.
func Key(line *Line, key string) string {
	_, parts := line.Name.Parts()
	for _, part := range parts {
		if value, ok := strings.CutPrefix(string(part), "/"+key+"="); ok {
			return value
		}
	}
	return ""
}

// Values returns the distinct values of a key in the names of the lines, in
// order.
func (s *Set) Values(key string) []string { return inNames(s.Lines, key) }

// inNames returns the distinct values of a key in the names of some lines.
func inNames(lines Lines, key string) []string {
	return lines.each(func(l *Line) string { return Key(l, key) })
}

// MainMix returns the mix that sentences refer to if several were measured;
// tables have the others.
func MainMix(measured []string) string {
	for _, mix := range []string{"W", "B", "A", "C"} {
		if slices.Contains(measured, mix) {
			return mix
		}
	}
	return ""
}

// nameKeys returns the keys and values in the name of a line.
func nameKeys(line *Line) (pairs [][2]string) {
	_, parts := line.Name.Parts()
	for _, part := range parts {
		if key, value, ok := strings.Cut(string(part[1:]), "="); ok {
			pairs = append(pairs, [2]string{key, value})
		}
	}
	return pairs
}

// failed reports whether a run was killed or failed.
func failed(line *Line) bool {
	return strings.HasPrefix(line.GetConfig("excluded"), "error: ")
}

// setting returns the settings of a line.
func setting(line *Line) string {
	return strings.TrimSpace(line.GetConfig("experiment") + " " + string(line.Name))
}

// sittingOf returns the sitting in which a line was measured.
func sittingOf(line *Line) string { return cmp.Or(line.GetConfig("sitting"), "?") }

// runOf identifies the run of a line: all that a sitting measures in a repeat.
func runOf(l *Line) string { return sittingOf(l) + " " + l.GetConfig("repeat") }

// byHost divides lines by host.
func byHost(lines Lines) []Lines {
	return lines.by(func(l *Line) string { return l.GetConfig("host") })
}

// sittingsOf returns the sittings of some lines, in order. Sittings are
// numbered by this order over the whole set.
func sittingsOf(lines Lines) []string {
	return slices.Sorted(slices.Values(lines.each(sittingOf)))
}

// distinct returns the distinct values of a configuration key, without "".
func distinct(lines Lines, key string) []string {
	return slices.DeleteFunc(lines.configured(key), func(v string) bool { return v == "" })
}

// appendNew appends a value that is not there yet.
func appendNew(list []string, value string) []string {
	if slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}
