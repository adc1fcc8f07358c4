// Package result reads result files, which have the Go benchmark format. All
// readers use it, so that all apply one rule: a figure is a finite number.
package result

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchunit"
)

// Files have times in nanoseconds, because benchstat scales those to a suitable
// unit: p50-ns. In memory all times are in milliseconds, for people: p50-ms.
// Older files already have these. Sizes are in megabytes in both, which
// benchstat scales: data-MB. They cannot be data-B, because B is also the name
// of a mix: qps-B.
var (
	inFiles  = strings.NewReplacer("-ms-", "-ns-")
	inMemory = strings.NewReplacer("-ns-", "-ms-")
)

// MaxWait is how long an arrival of a rate waits before it is given up. A
// percentile of at least MaxWait belongs to arrivals that were given up.
const MaxWait = 2 * time.Second

// million is nanoseconds in a millisecond.
const million = 1e6

// renamed replaces some of the hyphen-separated words of a unit.
func renamed(unit string, words *strings.Replacer) string {
	return strings.Trim(words.Replace("-"+unit+"-"), "-")
}

// ForFile converts a figure to the unit in files.
func ForFile(v benchfmt.Value) benchfmt.Value {
	if unit := renamed(v.Unit, inFiles); unit != v.Unit {
		return benchfmt.Value{Value: math.Round(v.Value * million), Unit: unit}
	}
	return v
}

// fromFile converts a figure of a file to the unit in memory.
func fromFile(v benchfmt.Value) benchfmt.Value {
	if v.OrigUnit != "" { // the reader has made B of MB and sec of ns
		v = benchfmt.Value{Value: v.OrigValue, Unit: v.OrigUnit}
	}
	if unit := renamed(v.Unit, inMemory); unit != v.Unit {
		return benchfmt.Value{Value: v.Value / million, Unit: unit}
	}
	return v
}

// Read calls each for the records of a file, whose name is for messages:
// results with times in milliseconds, and unreadable lines as
// *benchfmt.SyntaxError. Each owns its record. Read returns the metadata of
// units. It ends at the first error, of each, of the file, or of Check.
func Read(r io.Reader, name string, each func(benchfmt.Record) error) (benchfmt.UnitMetadataMap, error) {
	in := benchfmt.NewReader(r, name)
	for in.Scan() {
		record := in.Result()
		if line, ok := record.(*benchfmt.Result); ok {
			line = line.Clone()
			for i, v := range line.Values {
				line.Values[i] = fromFile(v)
			}
			if err := Check(line); err != nil {
				return nil, err
			}
			record = line
		}
		if err := each(record); err != nil {
			return nil, err
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	units := benchfmt.UnitMetadataMap{}
	for key, unit := range in.Units() {
		_, key.Unit = benchunit.Tidy(1, renamed(unit.OrigUnit, inMemory)) // where Get looks
		said := *unit
		said.UnitMetadataKey, said.OrigUnit = key, key.Unit
		units[key] = &said
	}
	return units, nil
}

// Check refuses a line with a figure that is not a finite number, because
// medians and tests of it are meaningless. An excluded line passes, because it
// does not count.
func Check(line *benchfmt.Result) error {
	if line.GetConfig("excluded") != "" {
		return nil
	}
	for _, v := range line.Values {
		if !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
			continue
		}
		at := ""
		if file, number := line.Pos(); file != "" {
			at = fmt.Sprintf("%s:%d: ", file, number)
		}
		return fmt.Errorf(`%sBenchmark%s: %v %s is not a finite number; measure it again, or remove the line or put "excluded: REASON" before it and "excluded:" behind it`,
			at, line.Name, v.Value, v.Unit)
	}
	return nil
}
