package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// allEngines are the engines that compare measures when none is named.
var allEngines = []string{"sqlite", "libsql", "duckdb", "postgres"}

// compareCmd measures engines one after the other, each in a process of its
// own, so that memory, page cache and a crash are its own.
type compareCmd struct {
	measureFlags
	Engines []string `arg:"" optional:"" help:"Engines to measure: sqlite, libsql, duckdb, postgres; all when none is given."`
	JSON    bool     `help:"Print the measurements as JSON."`
}

// outcome is an engine's measurement, or why there is none.
type outcome struct {
	Name        string       `json:"name"`
	Error       string       `json:"error,omitempty"`
	Measurement *measurement `json:"measurement,omitempty"`
}

// Run compares. It prints what it has when an engine fails, and fails then.
func (c *compareCmd) Run(e *env) error {
	if err := c.check(); err != nil {
		return err
	}
	if len(c.Engines) == 0 {
		c.Engines = allEngines
	}
	if err := knownEngines(c.Engines); err != nil {
		return err
	}
	var outcomes []outcome
	var failed error
	for i, name := range c.Engines {
		start := time.Now()
		fmt.Fprintf(e.stderr, "%s: engine %d of %d\n", name, i+1, len(c.Engines))
		o := outcome{Name: name, Measurement: new(measurement)}
		worker := child{engine: name, args: append([]string{"worker", "--engine=" + name}, c.args()...), dir: c.Dir, into: o.Measurement}
		err := worker.run(e)
		if err := e.ctx.Err(); err != nil {
			return err
		}
		if err != nil {
			o.Measurement, o.Error = nil, err.Error()
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
		fmt.Fprintf(e.stderr, "%s: done in %s\n", name, time.Since(start).Round(100*time.Millisecond))
		outcomes = append(outcomes, o)
	}
	if c.JSON {
		return errors.Join(printJSON(e.stdout, outcomes), failed)
	}
	return errors.Join(c.print(e.stdout, outcomes), failed)
}

func (c *compareCmd) print(out io.Writer, outcomes []outcome) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	c.printHead(out, outcomes)
	fmt.Fprintf(out, "\nReal Arkiv blocks: 100 commits, 52 recorded queries, every visible entity by key\n")
	printParts(w, outcomes, func(m *measurement) *part { return &m.Real })
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nGenerated blocks, profile %s: %d commits of 100 entities on a store of %d\n", c.Profile, c.Commits, c.Entities)
	printParts(w, outcomes, func(m *measurement) *part { return &m.Made })
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nEvery answer was compared with the right one; same = the digest of the history.")
	printSettings(out, outcomes)
	return nil
}

func (c *compareCmd) printHead(out io.Writer, outcomes []outcome) {
	fmt.Fprintf(out, "layout %s, durability %s, memory %s for each engine\n", c.Layout, c.Durability, c.Memory)
	for _, o := range outcomes {
		if o.Measurement != nil {
			h := o.Measurement.Host
			fmt.Fprintf(out, "%d cores, %.0f GiB, %s on %s, fsync %s\n", h.Cores, float64(h.MemoryBytes)/(1<<30), h.Kernel, h.Filesystem, h.Fsync.Median)
			return
		}
	}
}

func printParts(w io.Writer, outcomes []outcome, choose func(*measurement) *part) {
	fmt.Fprintln(w, "engine\tversion\tcommit p50\tp99\tmax ms\trows/s\tget p50\tp99 ms\tquery p50\tp99 ms\tMB\tB/entity\tdigest\t")
	for _, o := range outcomes {
		if o.Measurement == nil {
			fmt.Fprintf(w, "%s\tfailed\t\t\t\t\t\t\t\t\t\t\t\t\n", o.Name)
			continue
		}
		p := choose(o.Measurement)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.0f\t%s\t%s\t%s\t%s\t%s\t%.0f\t%.8s\t\n", o.Name, o.Measurement.Engine.Version,
			ms(p.Commit.P50), ms(p.Commit.P99), ms(p.Commit.Max), p.RowsRate,
			ms(p.Get.P50), ms(p.Get.P99), ms(p.Query.P50), ms(p.Query.P99), megabytes(p), p.Bytes, p.Digest)
	}
}

func ms(d time.Duration) string {
	v := float64(d) / float64(time.Millisecond)
	switch {
	case v >= 10:
		return fmt.Sprintf("%.0f", v)
	case v >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func megabytes(p *part) string {
	if p.Stats.DatabaseBytes == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(*p.Stats.DatabaseBytes)/1e6)
}

func printSettings(out io.Writer, outcomes []outcome) {
	fmt.Fprintln(out, "\nSettings as read back:")
	for _, o := range outcomes {
		if o.Measurement == nil {
			fmt.Fprintf(out, "  %s: %s\n", o.Name, o.Error)
			continue
		}
		list := make([]string, len(o.Measurement.Settings))
		for i, s := range o.Measurement.Settings {
			list[i] = s.Name + "=" + s.Value
		}
		fmt.Fprintf(out, "  %s: %s\n", o.Name, strings.Join(list, ", "))
	}
}
