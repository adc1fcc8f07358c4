package crashtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Report counts what trials did and collects what they found. Its methods may be
// called from several goroutines. The zero value is empty.
type Report struct {
	mu sync.Mutex

	Rows       []*Row      `json:"rows"`
	Violations []Violation `json:"violations"`
	Skipped    []Skip      `json:"skipped"`
}

// Row is what one trial did on one engine and layout.
type Row struct {
	Trial  string `json:"trial"`
	Engine string `json:"engine"`
	Layout string `json:"layout"`

	Turns    int            `json:"turns"`
	Faults   int            `json:"faults"`
	Seconds  float64        `json:"seconds"`
	Where    map[string]int `json:"where"`    // faults by what they hit
	Outcomes map[string]int `json:"outcomes"` // what came of them, by a short name
}

// Violation is a promise that was broken.
type Violation struct {
	Trial  string `json:"trial"`
	Engine string `json:"engine"`
	Layout string `json:"layout"`
	Seed   uint64 `json:"seed"`   // of the turn
	Faults int    `json:"faults"` // that the turn was to try
	Text   string `json:"text"`

	Kept string `json:"kept,omitempty"` // directory with what is left of the turn
}

// Skip is a trial that could not be made.
type Skip struct {
	Trial  string `json:"trial"`
	Engine string `json:"engine"`
	Layout string `json:"layout"`
	Reason string `json:"reason"`
}

// row returns the row of a trial on a cell. The caller holds the lock.
func (r *Report) row(trial, engine, layout string) *Row {
	for _, row := range r.Rows {
		if row.Trial == trial && row.Engine == engine && row.Layout == layout {
			return row
		}
	}
	row := &Row{Trial: trial, Engine: engine, Layout: layout, Where: map[string]int{}, Outcomes: map[string]int{}}
	r.Rows = append(r.Rows, row)
	return row
}

// Fault counts one fault by what it hit.
func (r *Report) Fault(t Trial, c Cell, where string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.row(t.Name(), c.Engine, c.Layout)
	row.Faults++
	row.Where[where]++
}

// Count adds n to an outcome.
func (r *Report) Count(t Trial, c Cell, outcome string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.row(t.Name(), c.Engine, c.Layout).Outcomes[outcome] += n
}

// Violate records a broken promise.
func (r *Report) Violate(t Trial, c Cell, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Violations = append(r.Violations, Violation{
		Trial: t.Name(), Engine: c.Engine, Layout: c.Layout, Seed: c.Seed, Faults: c.Faults, Text: fmt.Sprintf(format, args...),
	})
}

// kept says of the violations from the first one on where their files are.
func (r *Report) kept(first int, dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.Violations[first:] {
		r.Violations[first+i].Kept = dir
	}
}

// skip records once that a trial cannot be made.
func (r *Report) skip(t Trial, c Cell, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Skip{Trial: t.Name(), Engine: c.Engine, Layout: c.Layout, Reason: reason}
	if !slices.Contains(r.Skipped, s) {
		r.Skipped = append(r.Skipped, s)
	}
}

// turn counts a turn that took some seconds.
func (r *Report) turn(t Trial, c Cell, seconds float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.row(t.Name(), c.Engine, c.Layout)
	row.Turns++
	row.Seconds += seconds
}

// Faults returns how many faults of a trial a cell has had.
func (r *Report) Faults(t Trial, engine, layout string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.row(t.Name(), engine, layout).Faults
}

// Merge adds what another process reported.
func (r *Report) Merge(o *Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, from := range o.Rows {
		to := r.row(from.Trial, from.Engine, from.Layout)
		to.Turns += from.Turns
		to.Faults += from.Faults
		to.Seconds += from.Seconds
		addCounts(to.Where, from.Where)
		addCounts(to.Outcomes, from.Outcomes)
	}
	r.Violations = append(r.Violations, o.Violations...)
	for _, s := range o.Skipped {
		if !slices.Contains(r.Skipped, s) {
			r.Skipped = append(r.Skipped, s)
		}
	}
}

func addCounts(to, from map[string]int) {
	for name, n := range from {
		to[name] += n
	}
}

// Broken returns how many promises were broken.
func (r *Report) Broken() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.Violations)
}

// counts prints a map of counts, the largest first.
func counts(m map[string]int) string {
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(m[b]-m[a], cmp.Compare(a, b)) })
	text := ""
	for i, name := range names {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %d", name, m[name])
	}
	return text
}
