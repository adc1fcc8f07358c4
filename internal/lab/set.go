package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/internal/filesync"
)

// Set is a directory of results in the Go benchmark format: a file for each experiment on each
// engine in each sitting, with its manifest as configuration lines,
//
//	C1-sqlite-20261125T101112Z.txt           a line for each variant and repeat, and for each kind of operation
//	D1-sqlite-20261125T101112Z-timeline.txt  a line for each second
//	A8-sqlite-20261125T101112Z-blocks.txt    a line for each block
//
// Each is on the disk when Add returns.
type Set struct {
	dir string
	has map[runID]bool // whether it failed
}

// runID is what no two runs of a set share.
type runID struct {
	experiment, name string
	repeat           int
}

// The ends of names of files that have no results of whole runs, and the file of other
// programs' figures.
const (
	timelineFile = "-timeline"
	blocksFile   = "-blocks"
	peersFile    = "peers.txt"
)

// Keys of configuration lines that readers ask for.
const (
	experimentKey = "experiment"
	repeatKey     = "repeat"
	excludedKey   = "excluded"
	noteKey       = "note"
)

// OpenSet opens a directory of results, makes it when it is missing, and reads what it has.
func OpenSet(dir string) (*Set, error) {
	s := &Set{dir: dir, has: map[runID]bool{}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := s.mend(); err != nil {
		return nil, err
	}
	err := s.Read(func(r *benchfmt.Result) {
		repeat, _ := strconv.Atoi(r.GetConfig(repeatKey))
		s.has[runID{r.GetConfig(experimentKey), string(r.Name), repeat}] = r.GetConfig(excludedKey) != ""
	})
	return s, err
}

// mend cuts off the lines that a process left torn when it was ended.
func (s *Set) mend() error {
	files, err := fs.Glob(os.DirFS(s.dir), "*.txt")
	for _, name := range files {
		if err == nil && name != peersFile {
			err = appendResults(filepath.Join(s.dir, name), nil)
		}
	}
	return err
}

// Read calls f with each result of the set's runs, in the order in which they were made; it is
// valid until f returns.
func (s *Set) Read(f func(r *benchfmt.Result)) error {
	files, err := fs.Glob(os.DirFS(s.dir), "*.txt")
	if err != nil {
		return err
	}
	for _, name := range files {
		stem := strings.TrimSuffix(name, ".txt")
		if name == peersFile || strings.HasSuffix(stem, timelineFile) || strings.HasSuffix(stem, blocksFile) {
			continue
		}
		if err := read(filepath.Join(s.dir, name), f); err != nil {
			return err
		}
	}
	return nil
}

func read(path string, f func(r *benchfmt.Result)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	reader := benchfmt.NewReader(file, path)
	for reader.Scan() {
		switch r := reader.Result().(type) {
		case *benchfmt.Result:
			f(r)
		case *benchfmt.SyntaxError:
			return fmt.Errorf("%s: %w; mend or remove the line", path, r)
		}
	}
	return reader.Err()
}

// Written returns the figures of a result in the units in which they were written: the format's
// reader makes bytes of MB.
func Written(r *benchfmt.Result) (list []bench.Metric) {
	for _, v := range r.Values {
		if v.OrigUnit != "" {
			v = bench.Metric{Value: v.OrigValue, Unit: v.OrigUnit}
		}
		list = append(list, v)
	}
	return list
}

// Has tells whether the set has a run, and whether that failed.
func (s *Set) Has(experiment, line string, repeat int) (failed, has bool) {
	failed, has = s.has[runID{experiment, string(benchName(line)), repeat + 1}]
	return failed, has
}

// Failed returns how many runs the set has that failed, and nothing else of them.
func (s *Set) Failed() (list []string) {
	for id, failed := range s.has {
		if failed {
			list = append(list, fmt.Sprintf("%s %s, repeat %d", id.experiment, id.name, id.repeat))
		}
	}
	slices.Sort(list)
	return list
}

// Len returns how many runs the set has.
func (s *Set) Len() int { return len(s.has) }

// Add adds what was measured to the files of an experiment on an engine in a sitting.
func (s *Set) Add(experiment, engine, sitting string, r *Record) error {
	stem := filepath.Join(s.dir, experiment+"-"+engine+"-"+sitting)
	config := configOf(experiment, r)
	list := []*benchfmt.Result{line(config, r.Name, r.Keys, r.Count, r.Figures())}
	if len(r.Metrics) == 0 { // a line has some
		list[0].Values = []bench.Metric{{Value: 1, Unit: "failed"}}
	}
	for _, k := range r.Kinds {
		if n := k.Latency.Count(); n > 0 {
			list = append(list, line(config, r.Name, r.Keys.With("kind", k.Name), n, k.Latency.Metrics("")))
		}
	}
	err := appendResults(stem+".txt", list)
	if err == nil && len(r.Timeline) > 0 {
		err = appendResults(stem+timelineFile+".txt", timeline(config, r))
	}
	if err == nil && len(r.Rows) > 0 {
		err = appendResults(stem+blocksFile+".txt", blocks(config, r))
	}
	if err != nil {
		return fmt.Errorf("add to results %q: %w", s.dir, err)
	}
	repeat, _ := strconv.Atoi(r.Manifest.Get(repeatKey))
	s.has[runID{experiment, string(list[0].Name), repeat}] = r.Err != nil
	return nil
}

// configOf returns the manifest of a record with what else its lines are of.
func configOf(experiment string, r *Record) []benchfmt.Config {
	m := slices.Clone(r.Manifest)
	m = append(bench.Manifest{{Key: experimentKey, Value: []byte(experiment), File: true}}, m...)
	m.Set(noteKey, strings.Join(r.Notes, "; "))
	if r.Err != nil {
		m.Set(excludedKey, "error: "+r.Err.Error())
	}
	return m
}

// benchName returns the name after "Benchmark". A value that ends like "arkiv-13" would be read
// as arkiv with a GOMAXPROCS of 13; one of 1 is what the testing package leaves out, so it says
// nothing new behind it.
func benchName(line string) benchfmt.Name {
	if _, parts := benchfmt.Name(line).Parts(); len(parts) > 0 && parts[len(parts)-1][0] == '-' {
		line += "-1"
	}
	return benchfmt.Name(line)
}

// Figures are the metrics without those of a unit that an earlier one has: they would be taken for
// repetitions.
func (r *Record) Figures() []bench.Metric {
	seen := make(map[string]bool, len(r.Metrics))
	return slices.DeleteFunc(slices.Clone(r.Metrics), func(m bench.Metric) bool {
		before := seen[m.Unit]
		seen[m.Unit] = true
		return before
	})
}

// timeline returns a line for each second.
func timeline(config []benchfmt.Config, r *Record) (list []*benchfmt.Result) {
	for i := range r.Timeline {
		s := &r.Timeline[i]
		values := []bench.Metric{{Value: float64(s.Count), Unit: "ops"}}
		if s.Count > 0 {
			values = append(values, latency.Milliseconds(s.Max, "max-ms"))
		}
		for _, unit := range slices.Sorted(maps.Keys(s.Sampled)) {
			values = append(values, bench.Metric{Value: s.Sampled[unit], Unit: unit})
		}
		if s.Errors > 0 {
			values = append(values, bench.Metric{Value: float64(s.Errors), Unit: "errors"})
		}
		list = append(list, line(config, "Timeline", r.Keys.With("second", strconv.FormatFloat(s.At, 'g', 5, 64)), s.Count, values))
	}
	return list
}

// blocks returns a line for each observed block.
func blocks(config []benchfmt.Config, r *Record) (list []*benchfmt.Result) {
	for i, row := range r.Rows {
		values := make([]bench.Metric, len(row))
		for n, v := range row {
			values[n] = bench.Metric{Value: v, Unit: r.Columns[n]}
		}
		list = append(list, line(config, "Block", r.Keys.With("block", strconv.Itoa(i+1)), 1, values))
	}
	return list
}

func line(config []benchfmt.Config, name string, keys Keys, count int64, values []bench.Metric) *benchfmt.Result {
	return &benchfmt.Result{Config: config, Name: benchName(name + "/" + keys.String()), Iters: int(max(count, 1)), Values: values}
}

// appendResults adds lines to a file, all of them or none, and has them on the disk.
func appendResults(path string, list []*benchfmt.Result) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	before, err := os.ReadFile(path)
	whole := int64(bytes.LastIndexByte(before, '\n') + 1)
	if err == nil && whole < int64(len(before)) { // a process was ended while it wrote the rest
		err = f.Truncate(whole)
	}
	if err != nil || len(list) == 0 {
		return err
	}
	text, err := continued(before[:whole], list)
	if err == nil {
		_, err = f.Write(text)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Truncate(whole))
	}
	return filesync.Dir(filepath.Dir(path))
}

// continued writes results in the format, after what a file has: the writer goes through that
// again, so that it knows which configuration lines hold at its end and which units were told.
func continued(before []byte, list []*benchfmt.Result) ([]byte, error) {
	var text bytes.Buffer
	w, units := benchfmt.NewWriter(&text), map[string]bool{}
	reader := benchfmt.NewReader(bytes.NewReader(before), "")
	var last *benchfmt.Result
	for reader.Scan() {
		if r, ok := reader.Result().(*benchfmt.Result); ok {
			last = r.Clone()
			for _, v := range Written(r) {
				units[v.Unit] = true
			}
		}
	}
	if last != nil {
		if err := w.Write(last); err != nil {
			return nil, err
		}
		text.Reset()
	}
	for _, r := range list {
		for _, v := range r.Values {
			if better := Better(v.Unit); !units[v.Unit] && better != "" {
				fmt.Fprintf(&text, "Unit %s better=%s\n", v.Unit, better)
			}
			units[v.Unit] = true
		}
		if err := w.Write(r); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), reader.Err()
}

// neutral begin the units of figures that describe and are neither good nor bad.
var neutral = []string{"share-", "resident", "ops", "block", "entities", "strings", "numbers", "attributes", "payload_bytes"}

// Better returns which values of a unit are good ones by its name, "higher" or "lower": rates
// (…/s, qps) are better when higher; everything else is a time, a size or a count of things
// that went wrong. "" is neither.
func Better(unit string) string {
	switch {
	case slices.ContainsFunc(neutral, func(prefix string) bool { return strings.HasPrefix(unit, prefix) }):
		return ""
	case strings.HasPrefix(unit, "disk-"):
		return "lower"
	case strings.HasSuffix(unit, "/s"), unit == "qps", strings.HasSuffix(unit, "-qps"), strings.HasPrefix(unit, "qps-"):
		return "higher"
	}
	return "lower"
}
