package crashtest

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Print writes the report for people: what was done, then what was found.
func (r *Report) Print(out io.Writer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "trial\tengine\tlayout\tfaults\tfaults/s\tviolations\thit\toutcomes")
	for _, row := range r.Rows {
		rate := 0.0
		if row.Seconds > 0 {
			rate = float64(row.Faults) / row.Seconds
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.1f\t%d\t%s\t%s\n", row.Trial, row.Engine, row.Layout, row.Faults, rate,
			r.brokenIn(row), counts(row.Where), counts(row.Outcomes))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range r.Skipped {
		if _, err := fmt.Fprintf(out, "skipped: %s on %s/%s: %s\n", s.Trial, s.Engine, s.Layout, s.Reason); err != nil {
			return err
		}
	}
	for _, v := range r.Violations {
		_, err := fmt.Fprintf(out, "VIOLATION: %s on %s/%s: %s\n  again: varve torture --trials %s --engines %s --layouts %s --seed %d --turn %d --kills %d\n",
			v.Trial, v.Engine, v.Layout, v.Text, v.Trial, v.Engine, v.Layout, v.Seed, v.Faults, v.Faults)
		if err == nil && v.Kept != "" {
			_, err = fmt.Fprintf(out, "  kept: %s\n", v.Kept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// brokenIn counts the violations of a row.
func (r *Report) brokenIn(row *Row) (n int) {
	for _, v := range r.Violations {
		if slices.Equal([]string{v.Trial, v.Engine, v.Layout}, []string{row.Trial, row.Engine, row.Layout}) {
			n++
		}
	}
	return n
}
