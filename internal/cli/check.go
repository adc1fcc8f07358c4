package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// checkCmd looks for damage.
type checkCmd struct {
	URL      string `arg:"" store:"" help:"Store to check."`
	Against  string `store:"" xor:"how" help:"Source from which the store was filled. The store must have the same entities, or copies of them if it was scaled." placeholder:"SRC"`
	Repair   bool   `xor:"how" help:"Rebuild derived data: indexes, attribute rows, sets of ids, postings, counters. Versions, payloads, blocks and events are never changed. When one of them is damaged, nothing is changed."`
	Findings int    `min:"1" max:"1000000" help:"Findings of each part to list." default:"20"`
	JSON     bool   `help:"Print the report as JSON."`
}

// Help implements kong.HelpProvider.
func (c *checkCmd) Help() string {
	return `Exit codes: 0 sound; 1 the store is damaged; 3 not checked: no damage was found, but a part could not be checked, and the reason is printed; 2 wrong usage; 130 interrupted.`
}

// errNotChecked: check could not examine all of the store.
var errNotChecked = errors.New("not checked, so nothing is known about the store; remove the reason and check again")

// Run checks. It fails when a finding was not repaired, or a part could not be
// checked; only findings have the exit code of an error.
func (c *checkCmd) Run(e *env) error {
	err := c.run(e)
	if err == nil || errors.Is(err, store.ErrCorrupt) || wrongUse(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errNotChecked, err)
}

func (c *checkCmd) run(e *env) (err error) {
	var src *source.Source
	if c.Against != "" {
		if src, err = source.Open(e.ctx, c.Against); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, src.Close()) }()
	}
	db, err := openExisting(e.ctx, c.URL, &store.Options{ReadOnly: !c.Repair})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	bars := &checkBars{out: e.stderr}
	defer bars.finish()
	opts := &store.CheckOptions{Findings: c.Findings, Progress: bars.show}
	if c.Repair {
		return c.repair(e, db, opts, bars)
	}
	report, err := db.Check(e.ctx, opts)
	bars.finish()
	if err != nil {
		return err
	}
	if src != nil {
		err = c.against(e, db, src, &report)
	}
	return errors.Join(c.print(e, report, report), err)
}

func (c *checkCmd) repair(e *env, db *store.DB, opts *store.CheckOptions, bars *checkBars) error {
	after, err := db.Repair(e.ctx, opts)
	bars.finish()
	if err != nil {
		return err
	}
	done := struct {
		Rebuilt []string          `json:"rebuilt"` // derived data that was rebuilt
		After   store.CheckReport `json:"after"`
	}{Rebuilt: after.Rebuilt}
	after.Rebuilt = nil
	done.After = after
	if !c.JSON {
		for _, what := range done.Rebuilt {
			fmt.Fprintf(e.stdout, "rebuilt %s\n", what)
		}
	}
	return c.print(e, after, done)
}

// print prints a report, or the given document as JSON. It fails unless the
// store is sound.
func (c *checkCmd) print(e *env, r store.CheckReport, document any) (err error) {
	if c.JSON {
		err = printJSON(e.stdout, document)
	} else {
		printCheck(e.stdout, r)
	}
	switch r.Outcome {
	case store.Damaged:
		err = errors.Join(err, driver.Of(store.ErrCorrupt, fmt.Errorf("the store is damaged; findings: %d", len(r.Findings))))
	case store.NotChecked:
		err = errors.Join(err, r.Err())
	}
	return err
}

func printCheck(w io.Writer, r store.CheckReport) {
	for _, f := range r.Findings {
		kind := "derived"
		if f.Source {
			kind = "source"
		}
		fmt.Fprintf(w, "FAILED %s (%s): %s\n", f.Part, kind, f.Problem)
	}
	if r.Layout != "" {
		digest := "the digest cannot be computed without the whole history"
		if r.Digest {
			digest = "digests recomputed"
		}
		fmt.Fprintf(w, "entities: layout %s, head %d, %d changes, %s, sound up to %s\n", r.Layout, r.Head.Number, r.Changes, digest, r.Sound)
	}
	if r.EventLayout != "" {
		fmt.Fprintf(w, "events: layout %s, %d events, head %d\n", r.EventLayout, r.Events, r.EventHead)
	}
	if r.Engine != "" {
		fmt.Fprintf(w, "engine: %s\n", r.Engine)
	}
	for _, p := range r.Parts {
		if p.Reason != "" {
			fmt.Fprintf(w, "%s %s: %s\n", strings.ToUpper(string(p.Outcome)), p.Part, p.Reason)
		}
	}
	if r.Outcome == store.Sound {
		fmt.Fprintln(w, "the store is sound")
	}
}

// checkBars shows one bar for each part.
type checkBars struct {
	out  io.Writer
	part string
	bar  *progressBar
}

func (b *checkBars) show(part, unit string, done, total uint64) {
	if part != b.part {
		b.finish()
		b.part = part
		b.bar = startBar(b.out, "check: "+part, unit, int64(total))
	}
	b.bar.Set(int64(done))
}

func (b *checkBars) finish() {
	if b.bar != nil {
		b.bar.Finish()
		b.bar = nil
		b.part = ""
	}
}
