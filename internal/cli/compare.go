package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/lab"
)

// compareCmd measures engines in turns, each in a process of its own, so that memory, page cache
// and a crash are its own.
type compareCmd struct {
	engineFlags
	recordFlags
	lab.FirstOptions
	Engines []string `arg:"" optional:"" help:"Engines to measure: ${engines}; all when none is given. The URL of a server of yours, postgres://host/db, measures that, in a schema of its own."`
	Layout  string   `help:"Entity layout." default:"arkiv"`
	Source  string   `store:"" placeholder:"SRC" help:"Data of your own to load, read and go on with, in place of blocks of the network and generated ones: a block tar, an Arkiv SQLite database, or the URL of a store."`
	Dir     string   `help:"Directory for the databases, which are removed afterwards; the system's temporary directory when not given." type:"existingdir"`
}

// Run compares. It prints what it has when an engine fails, and fails then.
func (c *compareCmd) Run(e *env) error {
	if _, err := bench.ParseProfile(c.Profile); err != nil {
		return usageError{err}
	}
	if len(c.Engines) == 0 {
		c.Engines = c.here(e)
	}
	o := lab.Options{Seed: 1, Layouts: []string{c.Layout}, First: &c.FirstOptions, Source: c.Source}
	x := entry{engineFlags: c.engineFlags, recordFlags: c.recordFlags, id: "Q1", engines: c.Engines, options: o, child: child{dir: c.Dir}}
	got, err := x.run(e)
	if got == nil {
		return err
	}
	if differ := got.sameDigests(); differ != nil {
		err = errors.Join(err, differ)
	}
	return errors.Join(err, got.rank(e.stdout, err == nil))
}

// here are the engines that there is a program for, this one or another. Who asks for none by
// name wants what can be had, and is told of what cannot.
func (c *compareCmd) here(e *env) (names []string) {
	for _, name := range engine.Names() {
		if _, err := programFor(e.ctx, name, false); err != nil {
			fmt.Fprintf(e.stderr, "compare: without %s: %v\n", name, err)
			continue
		}
		names = append(names, name)
	}
	return names
}

// ranked are the measures by which engines are put in an order, all better when lower.
var ranked = []struct{ name, unit, what string }{
	{"GeneratedBlocks", "commit-p50-ms", "commits of 100 entities"},
	{"GeneratedBlocks", "get-p50-ms", "reads by key"},
	{"GeneratedBlocks", "query-p50-ms", "queries"},
}

// rank says who is first, and when that cannot be relied on: others were at work, or the
// repeats of neighbours overlap. That answers were right it says only where nothing failed.
func (s *results) rank(out io.Writer, well bool) error {
	for _, off := range s.off {
		fmt.Fprintf(out, "The machine was not at rest: %s. These ranks cannot be relied on.\n", off)
	}
	for _, by := range ranked {
		rows := slices.DeleteFunc(slices.Clone(s.rows), func(r *row) bool { return r.name != by.name || len(r.values[by.unit]) == 0 })
		slices.SortFunc(rows, func(a, b *row) int { return cmp.Compare(a.summary(by.unit).Center, b.summary(by.unit).Center) })
		if len(rows) < 2 {
			continue
		}
		text := rows[0].get("engine") + " " + rows[0].cell(by.unit)
		for i, r := range rows[1:] {
			text += orderSign(rows[i], r, by.unit) + r.get("engine") + " " + r.cell(by.unit)
		}
		fmt.Fprintf(out, "%s, median in ms: %s\n", by.what, text)
	}
	if len(s.rows) > 0 {
		fmt.Fprintln(out, "≈: the repeats overlap, or are fewer than three, so that the order may be luck.")
	}
	if !well {
		return nil
	}
	_, err := fmt.Fprintln(out, "Every answer was compared with the right one, and so was the digest of each store.")
	return err
}

// orderSign tells a difference that all repeats show from one that may be luck.
func orderSign(a, b *row, unit string) string {
	first, second := a.values[unit], b.values[unit]
	if min(len(first), len(second)) < 3 || slices.Max(first) >= slices.Min(second) {
		return " ≈ "
	}
	return " < "
}

// sameDigests fails when engines that were given the same hold something else.
func (s *results) sameDigests() error {
	first := map[string]string{}
	for _, r := range s.rows {
		given := r.name + "/" + strings.Join(slices.DeleteFunc(slices.Clone(r.keys), func(k string) bool { return strings.HasPrefix(k, "engine=") }), "/")
		for _, digest := range r.digests {
			if want := cmp.Or(first[given], digest); digest != want {
				return fmt.Errorf("%w: %s: %s of %s, %s of another engine", bench.ErrMismatch, r.name, digest, r.get("engine"), want)
			}
			first[given] = cmp.Or(first[given], digest)
		}
	}
	return nil
}
