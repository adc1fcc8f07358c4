// Package result reads result files, which have the Go benchmark format. All
// that reads them does it here, so that they keep one rule: a figure is a
// finite number.
package result

import (
	"fmt"
	"io"
	"math"

	"golang.org/x/perf/benchfmt"
)

// Read calls each with the records of a file, whose name is for messages: results
// with the units in which they were written, and lines that could not be read, as
// *benchfmt.SyntaxError. A record is the caller's. Read returns what the file says
// of units. It ends at the first error of each, of the file, or of Check.
func Read(r io.Reader, name string, each func(benchfmt.Record) error) (benchfmt.UnitMetadataMap, error) {
	in := benchfmt.NewReader(r, name)
	for in.Scan() {
		record := in.Result()
		if line, ok := record.(*benchfmt.Result); ok {
			line = line.Clone()
			for i, v := range line.Values {
				if v.OrigUnit != "" { // the reader has made B of MB and sec of ns
					line.Values[i] = benchfmt.Value{Value: v.OrigValue, Unit: v.OrigUnit}
				}
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
	return in.Units(), nil
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
