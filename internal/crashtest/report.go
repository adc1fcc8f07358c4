package crashtest

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report has the results of trials.
type Report struct {
	Rows []*Row `json:"rows"`
}

// Row has the results of one trial on one engine and layout.
type Row struct {
	Trial   string `json:"trial"`
	Engine  string `json:"engine"`
	Layout  string `json:"layout"`
	Skipped string `json:"skipped,omitempty"` // why it could not be made

	Turns      int            `json:"turns"`
	Faults     int            `json:"faults"`
	Seconds    float64        `json:"seconds"`
	Where      map[string]int `json:"where"`    // faults by what they hit
	Outcomes   map[string]int `json:"outcomes"` // what came of them, by a short name
	Violations []Violation    `json:"violations"`

	cell Cell // of the running round
}

// Violation is a broken promise.
type Violation struct {
	Seed   uint64 `json:"seed"`   // of the round
	Faults int    `json:"faults"` // planned for the round
	Text   string `json:"text"`
	Kept   string `json:"kept,omitempty"` // directory with the round's remains
}

func newRow(t Trial, c Cell) *Row {
	return &Row{Trial: t.Name, Engine: c.Engine, Layout: c.Layout, Where: map[string]int{}, Outcomes: map[string]int{}, cell: c}
}

// Fault counts a fault by the place that it hit.
func (r *Row) Fault(where string) {
	r.Faults++
	r.Where[where]++
}

// Violate records a broken promise.
func (r *Row) Violate(format string, args ...any) {
	r.Violations = append(r.Violations, Violation{Seed: r.cell.Seed, Faults: r.cell.Faults, Text: fmt.Sprintf(format, args...)})
}

// Broken returns how many promises were broken.
func (r *Report) Broken() (n int) {
	for _, row := range r.Rows {
		n += len(row.Violations)
	}
	return n
}

// Print writes the report for people: the rounds, then the places that faults
// of a trial hit and their outcomes, then the violations.
func (r *Report) Print(out io.Writer) error {
	var found, trials strings.Builder
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "trial\tengine\tlayout\tfaults\tfaults/s\tviolations")
	for _, row := range r.Rows {
		if row.Skipped != "" {
			fmt.Fprintf(&found, "skipped: %s on %s/%s: %s\n", row.Trial, row.Engine, row.Layout, row.Skipped)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.1f\t%d\n", row.Trial, row.Engine, row.Layout, row.Faults,
			float64(row.Faults)/max(row.Seconds, 0.1), len(row.Violations))
		for _, v := range row.Violations {
			fmt.Fprintf(&found, "VIOLATION: %s on %s/%s: %s\n  again: varve torture --trials %s --engines %s --layouts %s --seed %d --kills %d\n",
				row.Trial, row.Engine, row.Layout, v.Text, row.Trial, row.Engine, row.Layout, v.Seed, v.Faults)
			if v.Kept != "" {
				fmt.Fprintf(&found, "  kept: %s\n", v.Kept)
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, row := range r.Rows {
		if i == 0 || row.Trial != r.Rows[i-1].Trial {
			if hit, outcomes := r.total(row.Trial); len(hit) > 0 {
				fmt.Fprintf(&trials, "%s hit:\n%s%s ended in:\n%s", row.Trial, counts(hit), row.Trial, counts(outcomes))
			}
		}
	}
	_, err := io.WriteString(out, trials.String()+found.String())
	return err
}

// total sums the places that the faults of a trial hit, and their outcomes.
func (r *Report) total(trial string) (hit, outcomes map[string]int) {
	hit, outcomes = map[string]int{}, map[string]int{}
	for _, row := range r.Rows {
		if row.Trial == trial {
			for name, n := range row.Where {
				hit[name] += n
			}
			for name, n := range row.Outcomes {
				outcomes[name] += n
			}
		}
	}
	return hit, outcomes
}

// counts formats counts, the largest first, one a line.
func counts(m map[string]int) (text string) {
	for _, name := range slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(m[b]-m[a], cmp.Compare(a, b)) }) {
		text += fmt.Sprintf("  %7d %s\n", m[name], name)
	}
	return text
}
