package result

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// Keys of the benchmark format, and those of a Config for what is in a name of
// the testing package but not as key=value.
const (
	betterKey = "better"
	pkgKey    = "pkg"
	procsKey  = "gomaxprocs" // not for 1, which the testing package leaves out
	subKey    = "sub"        // of a part without a key: sub, sub2, …
)

// ReadBench reads the Go benchmark format, as WriteBench and go test -bench write
// it; name is for messages. Each line is a record with metrics in the units of
// the file, and lines of one name are its repetitions. The experiment is that of
// the file's configuration, or the package that was tested. Lines that cannot be
// read are warnings.
func ReadBench(r io.Reader, name string) (*Results, error) {
	results := &Results{Units: make(map[string]Direction)}
	repeats := make(map[string]int)
	in := benchfmt.NewReader(r, name)
	for in.Scan() {
		switch line := in.Result().(type) {
		case *benchfmt.SyntaxError:
			results.warn("%v", line)
		case *benchfmt.UnitMetadata:
			results.addUnit(line)
		case *benchfmt.Result:
			rec := record(line)
			rec.Repeat = repeats[rec.Key()]
			repeats[rec.Key()]++
			results.Records = append(results.Records, rec)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("read benchmarks: %w", err)
	}
	return results, nil
}

func (r *Results) addUnit(u *benchfmt.UnitMetadata) {
	if u.Key != betterKey {
		return
	}
	switch u.Value {
	case Higher.String():
		r.Units[u.OrigUnit] = Higher
	case Lower.String():
		r.Units[u.OrigUnit] = Lower
	}
}

func record(line *benchfmt.Result) Record {
	rec := Record{Experiment: line.GetConfig(experimentKey)}
	if rec.Experiment == "" {
		rec.Experiment = line.GetConfig(pkgKey)
	}
	base, parts := line.Name.Parts()
	rec.Name = string(base)
	subs := 0
	for _, part := range parts {
		p := pair(string(part))
		if p.Key == subKey {
			if subs++; subs > 1 {
				p.Key += strconv.Itoa(subs)
			}
		}
		if p != (Pair{Key: procsKey, Value: "1"}) {
			rec.Config = append(rec.Config, p)
		}
	}
	for _, v := range line.Values {
		m := Metric{Value: v.Value, Unit: v.Unit}
		if v.OrigUnit != "" {
			m = Metric{Value: v.OrigValue, Unit: v.OrigUnit}
		}
		rec.Metrics = append(rec.Metrics, m)
	}
	return rec
}

// pair reads a part of a name: "/key=value", "/value" or "-GOMAXPROCS".
func pair(part string) Pair {
	if procs, ok := strings.CutPrefix(part, "-"); ok {
		return Pair{Key: procsKey, Value: procs}
	}
	part = strings.TrimPrefix(part, "/")
	if key, value, ok := strings.Cut(part, "="); ok {
		return Pair{Key: key, Value: value}
	}
	return Pair{Key: subKey, Value: part}
}
