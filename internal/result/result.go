// Package result reads result files, which have the Go benchmark format. All
// that reads them does it here, so that they keep one rule: a figure is a
// finite number.
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

// Files have nanoseconds, because benchstat gives those the prefix that fits:
// p50-ns. People read milliseconds, which all times have once they are read:
// p50-ms. Files of before have these too. Sizes are megabytes in both, which
// benchstat scales: data-MB. They cannot be data-B, because B is a mix: qps-B.
var (
	inFiles  = strings.NewReplacer("-ms-", "-ns-")
	inMemory = strings.NewReplacer("-ns-", "-ms-")
)

// MaxWait is how long an arrival of a rate waits before it is given up. A
// percentile of at least that is one of arrivals that were given up.
const MaxWait = 2 * time.Second

// million is nanoseconds in a millisecond.
const million = 1e6

// renamed returns a unit with some of its words, which hyphens separate, replaced.
func renamed(unit string, words *strings.Replacer) string {
	return strings.Trim(words.Replace("-"+unit+"-"), "-")
}

// ForFile returns a figure in the unit that files have.
func ForFile(v benchfmt.Value) benchfmt.Value {
	if unit := renamed(v.Unit, inFiles); unit != v.Unit {
		return benchfmt.Value{Value: math.Round(v.Value * million), Unit: unit}
	}
	return v
}

// fromFile returns a figure of a file in the unit that figures in memory have.
func fromFile(v benchfmt.Value) benchfmt.Value {
	if v.OrigUnit != "" { // the reader has made B of MB and sec of ns
		v = benchfmt.Value{Value: v.OrigValue, Unit: v.OrigUnit}
	}
	if unit := renamed(v.Unit, inMemory); unit != v.Unit {
		return benchfmt.Value{Value: v.Value / million, Unit: unit}
	}
	return v
}

// Read calls each with the records of a file, whose name is for messages: results
// with times in milliseconds, and lines that could not be read, as
// *benchfmt.SyntaxError. A record is the caller's. Read returns the metadata of
// units. It ends at the first error of each, of the file, or of Check.
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

// Check refuses a line with a figure that is not a finite number, because no
// median or test of it means anything. A line that is excluded does not count
// and passes.
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
