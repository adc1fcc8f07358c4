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

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/result"
	"github.com/varvedb/varve/schemas"
)

// documents are published figures that are compared with ours.
//
//go:embed documents.txt
var documents []byte

// Set is what result files hold. Values have the units of the files.
type Set struct {
	Lines    []*benchfmt.Result // measurements that count
	Excluded []*benchfmt.Result // measurements that do not count; configuration "excluded" has the reason
	Series   []*benchfmt.Result // seconds of time lines and blocks of designed experiments
	Peers    []*benchfmt.Result // other programs' figures
	Units    benchfmt.UnitMetadataMap
	Warnings []string // lines that could not be read
}

// Load reads a file in the Go benchmark format, or all *.txt of a directory. Published figures are added.
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
	s := &Set{Units: benchfmt.UnitMetadataMap{}}
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
	slices.SortStableFunc(s.Lines, func(a, b *benchfmt.Result) int { return place(a) - place(b) })
	return s, errors.Join(errs...)
}

// read adds the lines of a file; name is for messages.
func (s *Set) read(r io.Reader, name string) error {
	units, err := result.Read(r, name, func(record benchfmt.Record) error {
		switch line := record.(type) {
		case *benchfmt.SyntaxError:
			s.Warnings = append(s.Warnings, line.Error())
		case *benchfmt.Result:
			s.add(line)
		}
		return nil
	})
	maps.Copy(s.Units, units)
	return err
}

// running is the line that a process was measuring when it was killed, in its
// error.
var running = regexp.MustCompile(`^error: .*: \w+ (\S+/\S+), repeat \d+$`)

func (s *Set) add(line *benchfmt.Result) {
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

// place puts engines into the order of the list, and the default layout of each
// first; rows and columns of tables follow it, so that the reference comes first.
func place(line *benchfmt.Result) int {
	at := 2 * slices.Index(append(engine.Names(), Key(line, "engine")), Key(line, "engine"))
	if Key(line, "layout") != schemas.DefaultLayout {
		at++
	}
	return at
}

// Key returns the value of a key in the name of a line, "" when it has none.
func Key(line *benchfmt.Result, key string) string {
	_, parts := line.Name.Parts()
	for _, part := range parts {
		if value, ok := strings.CutPrefix(string(part), "/"+key+"="); ok {
			return value
		}
	}
	return ""
}

// Values returns the values of a key in the names of the lines, each once, in the order of the lines.
func (s *Set) Values(key string) []string { return inNames(s.Lines, key) }

// inNames are the values of a key in the names of some lines.
func inNames(lines []*benchfmt.Result, key string) (list []string) {
	for _, l := range lines {
		list = appendNew(list, Key(l, key))
	}
	return list
}

// nameKeys returns the keys in the name of a line with their values.
func nameKeys(line *benchfmt.Result) (pairs [][2]string) {
	_, parts := line.Name.Parts()
	for _, part := range parts {
		if key, value, ok := strings.Cut(string(part[1:]), "="); ok {
			pairs = append(pairs, [2]string{key, value})
		}
	}
	return pairs
}

// failed reports whether a run was killed or failed.
func failed(line *benchfmt.Result) bool {
	return strings.HasPrefix(line.GetConfig("excluded"), "error: ")
}

// setting is the settings of a line.
func setting(line *benchfmt.Result) string {
	return strings.TrimSpace(line.GetConfig("experiment") + " " + string(line.Name))
}

// sittingOf is the sitting in which a line was measured.
func sittingOf(line *benchfmt.Result) string { return cmp.Or(line.GetConfig("sitting"), "?") }

// sittingsOf are the sittings of some lines, in order. The sittings of a whole
// set are numbered so.
func sittingsOf(lines []*benchfmt.Result) (list []string) {
	for _, l := range lines {
		list = appendNew(list, sittingOf(l))
	}
	slices.Sort(list)
	return list
}

// distinct are the values of a configuration key.
func distinct(lines []*benchfmt.Result, key string) (list []string) {
	for _, l := range lines {
		if v := l.GetConfig(key); v != "" {
			list = appendNew(list, v)
		}
	}
	return list
}

// appendNew appends a value that is not there yet.
func appendNew(list []string, value string) []string {
	if slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}
