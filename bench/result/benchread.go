package result

import (
	"cmp"
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
// the file's configuration, or the package that was tested; what the configuration
// says of a program that is no experiment is in the notes. Lines that cannot be read
// are warnings.
func ReadBench(r io.Reader, name string) (*Results, error) {
	results := &Results{Units: make(map[string]Direction)}
	repeats := make(map[string]int)
	in := benchfmt.NewReader(r, name)
	for in.Scan() {
		switch line := in.Result().(type) {
		case *benchfmt.SyntaxError:
			results.warn("%v", line)
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
	for key, u := range in.Units() {
		if key.Key == betterKey {
			results.Units[u.OrigUnit] = Direction(in.Units().GetBetter(key.Unit))
		}
	}
	return results, nil
}

// setUp are the keys of a file's configuration that say how a peer was measured.
var setUp = []string{"peer", "version", "server", "date", "command", "machine", "note"}

func record(line *benchfmt.Result) Record {
	base, parts := line.Name.Parts()
	rec := Record{Experiment: cmp.Or(line.GetConfig(experimentKey), line.GetConfig(pkgKey)), Name: string(base)}
	for _, key := range setUp {
		if value := line.GetConfig(key); value != "" {
			rec.Notes = append(rec.Notes, key+": "+value)
		}
	}
	subs := 0
	for _, part := range parts {
		key, value, keyed := strings.Cut(string(part[1:]), "=")
		switch {
		case part[0] == '-':
			key, value = procsKey, key
		case !keyed:
			if subs++; subs > 1 {
				key, value = subKey+strconv.Itoa(subs), key
			} else {
				key, value = subKey, key
			}
		}
		if p := (Pair{key, value}); p != (Pair{procsKey, "1"}) {
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
