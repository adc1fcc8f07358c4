package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/result"
)

// Set is a directory of results in the Go benchmark format: a file for each experiment on each
// engine in each sitting, with its manifest as configuration lines,
//
//	C1-sqlite-20261125T101112Z.txt           a line for each variant and repeat, and for each kind of operation
//	D1-sqlite-20261125T101112Z-timeline.txt  a line for each ten seconds
//	A8-sqlite-20261125T101112Z-blocks.txt    a line for each block
//
// Each is on the disk when Add returns. One process at a time adds to a set.
type Set struct {
	dir   string
	has   map[runID]ending
	files map[string]*file
}

// runID identifies a run within a set.
type runID struct {
	experiment, name string
	repeat           int
}

// ending is how a run ended.
type ending struct {
	failed        bool
	host, sitting string // where and in which it was
}

// File name suffixes of files without results of whole runs, and the file with
// other programs' figures.
const (
	timelineFile = "-timeline"
	blocksFile   = "-blocks"
	peersFile    = "peers.txt"
)

// Keys of configuration lines that readers use.
const (
	experimentKey = "experiment"
	repeatKey     = "repeat"
	excludedKey   = "excluded"
	noteKey       = "note"
	sittingKey    = "sitting"
	hostKey       = "host"
)

// OpenSet opens or creates a directory of results, and reads its results.
func OpenSet(dir string) (*Set, error) {
	s := &Set{dir: dir, has: map[runID]ending{}, files: map[string]*file{}}
	err := os.MkdirAll(dir, 0o755)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(os.DirFS(dir), "*.txt")
	for _, name := range names {
		if err == nil && name != peersFile {
			err = s.open(name)
		}
	}
	return s, err
}

// open reads a file. It cuts off an incomplete last line of a killed process.
func (s *Set) open(name string) error {
	path := filepath.Join(s.dir, name)
	text, err := os.ReadFile(path)
	if whole := bytes.LastIndexByte(text, '\n') + 1; err == nil && whole < len(text) {
		text, err = text[:whole], os.Truncate(path, int64(whole))
	}
	if err != nil {
		return err
	}
	f := newFile()
	s.files[name] = f
	stem := strings.TrimSuffix(name, ".txt")
	runs := !strings.HasSuffix(stem, timelineFile) && !strings.HasSuffix(stem, blocksFile)
	_, err = result.Read(bytes.NewReader(text), path, func(record benchfmt.Record) error {
		switch r := record.(type) {
		case *benchfmt.SyntaxError:
			return fmt.Errorf("%s: %w; mend or remove the line", path, r)
		case *benchfmt.Result:
			if err := f.write(r); err != nil {
				return err
			}
			if f.text.Reset(); runs {
				repeat, _ := strconv.Atoi(r.GetConfig(repeatKey))
				s.has[runID{r.GetConfig(experimentKey), string(r.Name), repeat}] = ending{r.GetConfig(excludedKey) != "", r.GetConfig(hostKey), r.GetConfig(sittingKey)}
			}
		}
		return nil
	})
	return err
}

// file is a file of a set. Its contents determine how the next lines are
// written: the configuration at its end, and the declared units.
type file struct {
	text  bytes.Buffer // that is not yet in it
	lines *benchfmt.Writer
	units map[string]bool
}

func newFile() *file {
	f := &file{units: map[string]bool{}}
	f.lines = benchfmt.NewWriter(&f.text)
	return f
}

// write adds a line that readers accept, in the file's units.
func (f *file) write(r *benchfmt.Result) error {
	if err := result.Check(r); err != nil {
		return err
	}
	for i, v := range r.Values {
		v = result.ForFile(v)
		r.Values[i] = v
		if better := Better(v.Unit); !f.units[v.Unit] && better != "" {
			fmt.Fprintf(&f.text, "Unit %s better=%s\n", v.Unit, better)
		}
		f.units[v.Unit] = true
	}
	return f.lines.Write(r)
}

// Done reports whether the set has a run on this host, because figures of
// different hosts are not comparable. A failed run is repeated, but not in the
// same sitting, because its process may be the second one (see Lab.Renew).
func (s *Set) Done(experiment, line string, repeat int, host, sitting string) bool {
	end, has := s.has[runID{experiment, string(benchName(line)), repeat + 1}]
	return has && end.host == host && (!end.failed || end.sitting == sitting)
}

// Failed returns descriptions of failed runs only.
func (s *Set) Failed() (list []string) {
	for id, end := range s.has {
		if end.failed {
			list = append(list, fmt.Sprintf("%s %s, repeat %d", id.experiment, id.name, id.repeat))
		}
	}
	slices.Sort(list)
	return list
}

// Len returns how many runs the set has.
func (s *Set) Len() int { return len(s.has) }

// Add adds a record to the files of an experiment on an engine in a sitting.
func (s *Set) Add(experiment, engine, sitting string, r *Record) error {
	stem := experiment + "-" + engine + "-" + sitting
	config := configOf(experiment, r)
	list := []*benchfmt.Result{line(config, r.Name, r.Keys, r.Count, r.Figures())}
	if len(list[0].Values) == 0 { // a line has some
		list[0].Values = []bench.Metric{{Value: 1, Unit: "failed"}}
	}
	for _, k := range r.Kinds {
		if n := k.Latency.Count(); n > 0 {
			list = append(list, line(config, r.Name, r.Keys.With("kind", k.Name), n, k.Latency.Metrics("")))
		}
	}
	err := s.append(stem+".txt", list)
	if err == nil && len(r.Timeline) > 0 {
		err = s.append(stem+timelineFile+".txt", timeline(config, r))
	}
	if err == nil && len(r.Rows) > 0 {
		err = s.append(stem+blocksFile+".txt", blocks(config, r))
	}
	if err != nil {
		return fmt.Errorf("add to results %q: %w", s.dir, err)
	}
	repeat, _ := strconv.Atoi(r.Manifest.Get(repeatKey))
	s.has[runID{experiment, string(list[0].Name), repeat}] = ending{r.Err != nil, r.Manifest.Get(hostKey), sitting}
	return nil
}

// configOf returns a record's manifest and the other configuration of its
// lines.
func configOf(experiment string, r *Record) []benchfmt.Config {
	m := slices.Clone(r.Manifest)
	m = append(bench.Manifest{{Key: experimentKey, Value: []byte(experiment), File: true}}, m...)
	m.Set(noteKey, strings.Join(r.Notes, "; "))
	if r.Err != nil {
		m.Set(excludedKey, "error: "+r.Err.Error())
	}
	return m
}

// benchName returns the name after "Benchmark". A value such as "arkiv-13" at
// the end would be read as arkiv with a GOMAXPROCS of 13. The testing package
// omits a GOMAXPROCS of 1, so an appended "-1" changes nothing.
func benchName(line string) benchfmt.Name {
	if _, parts := benchfmt.Name(line).Parts(); len(parts) > 0 && parts[len(parts)-1][0] == '-' {
		line += "-1"
	}
	return benchfmt.Name(line)
}

// Figures are the metrics that are written. A second metric with the same unit
// is dropped, because it would be taken for a repetition, and so is a division
// by zero, as of a phase in which no operation finished.
func (r *Record) Figures() []bench.Metric {
	seen := make(map[string]bool, len(r.Metrics))
	return slices.DeleteFunc(slices.Clone(r.Metrics), func(m bench.Metric) bool {
		before := seen[m.Unit]
		seen[m.Unit] = true
		return before || math.IsNaN(m.Value) || math.IsInf(m.Value, 0)
	})
}

// timelineStep is the number of seconds in a line of a timeline.
const timelineStep = 10

// timeline returns a line for each ten seconds: counts are summed, of other
// figures it has the maximum.
func timeline(config []benchfmt.Config, r *Record) (list []*benchfmt.Result) {
	for part := range slices.Chunk(r.Timeline, timelineStep) {
		sum := latency.Second{At: part[len(part)-1].At, Sampled: map[string]float64{}}
		for i := range part {
			s := &part[i]
			sum.Count, sum.Errors, sum.Max = sum.Count+s.Count, sum.Errors+s.Errors, max(sum.Max, s.Max)
			for unit, v := range s.Sampled {
				if unit == "wal-MB" { // a size, not a count
					sum.Sampled[unit] = max(sum.Sampled[unit], v)
				} else {
					sum.Sampled[unit] += v
				}
			}
		}
		values := []bench.Metric{{Value: float64(sum.Count), Unit: "ops"}}
		if sum.Count > 0 {
			values = append(values, latency.Milliseconds(sum.Max, "max-ms"))
		}
		for _, unit := range slices.Sorted(maps.Keys(sum.Sampled)) {
			values = append(values, bench.Metric{Value: sum.Sampled[unit], Unit: unit})
		}
		if sum.Errors > 0 {
			values = append(values, bench.Metric{Value: float64(sum.Errors), Unit: "errors"})
		}
		list = append(list, line(config, "Timeline", r.Keys.With("second", strconv.FormatFloat(sum.At, 'g', 5, 64)), sum.Count, values))
	}
	return list
}

// blocks returns a line for each recorded block.
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

// append adds lines to a file durably, all of them or none.
func (s *Set) append(name string, list []*benchfmt.Result) (err error) {
	if s.files[name] == nil {
		s.files[name] = newFile()
	}
	to := s.files[name]
	for _, r := range list {
		if err := to.write(r); err != nil {
			return err
		}
	}
	defer to.text.Reset()
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	before, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		if _, err = f.Write(to.text.Bytes()); err == nil {
			err = f.Sync()
		}
		if err != nil {
			return errors.Join(err, f.Truncate(before))
		}
	}
	return errors.Join(err, filesync.Dir(s.dir))
}

// neutral are prefixes of units whose values are neither good nor bad.
var neutral = []string{"share-", "busy", "steady", "resident", "ops", "block", "entities", "strings", "numbers", "attributes", "payload_bytes"}

// Better returns which values of a unit are better, "higher" or "lower",
// judging by its name. Rates (…/s, qps) are better when higher; everything else
// is a time, a size or a number of failures. "" means neither.
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
