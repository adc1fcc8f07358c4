package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/report"
)

// compareCmd measures engines and layouts alternately. Each engine runs in a
// separate process, so that memory, page cache and crashes are separate.
type compareCmd struct {
	engineFlags
	lab.FirstOptions
	Out     string   `help:"Directory that keeps the results, in the Go benchmark format, for report, answer and benchstat. A run that is repeated continues from it. Without it no results are kept." type:"path"`
	Repeats int      `min:"1" max:"1000" help:"How often everything is measured, alternating with SQLite, each time with other questions. Fewer than four repeats cannot show a difference." default:"4"`
	Engines []string `arg:"" optional:"" help:"Engines to measure: ${engines}; by default all. The URL of your own server, postgres://host/db, measures that server, in a new schema."`
	Layouts []string `help:"Layouts of entities to compare." default:"arkiv,compact"`
	Source  string   `store:"" placeholder:"SRC" help:"Your own data to load, read and continue, in place of generated blocks: a block tar, an Arkiv SQLite database, or the URL of a store."`
	Dir     string   `help:"Directory for the databases, which are removed afterwards; the system's temporary directory when not given." type:"existingdir"`
}

// Run compares. When an engine fails it prints the other results, and returns
// the failure.
func (c *compareCmd) Run(e *env) (failed error) {
	if len(c.Engines) == 0 {
		c.Engines = here(e, "compare")
	}
	o := lab.Options{Scale: 1, Probe: true, Seed: 1, Layouts: c.Layouts, First: &c.FirstOptions, Source: c.Source}
	engines, err := c.set(&o, c.Engines)
	if err != nil {
		return err
	}
	found, err := lab.Find([]string{"Q1"})
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "%s on %s; layouts: %s; repeats: %d, alternating\n",
		found[0].Title, labels(engines), strings.Join(c.Layouts, ", "), c.Repeats)
	r := &runner{stages: []stage{{found: found}}, engines: engines, options: o, repeats: c.Repeats, out: c.Out, kept: c.Out != "", dir: c.Dir, apart: true, verbose: c.Verbose}
	if !r.kept {
		temp, err := filesync.TempDir(filepath.Join(os.TempDir(), "varve-compare"), nil)
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, temp.Remove()) }()
		r.out = temp.Path()
	}
	failed = r.run(e)
	if e.ctx.Err() != nil {
		return failed
	}
	return show(e, r.out, found[0], c.Verbose, failed)
}

// show prints the first table of an experiment from a directory of results, or
// all tables. The error is printed after the tables. The sentence that all
// answers were right is printed only if no run failed.
func show(e *env, dir string, x lab.Experiment, all bool, failed error) error {
	set, err := loadSet(e, dir)
	if err != nil {
		return cmp.Or(failed, err)
	}
	if failed == nil {
		failed = failure(set, x.ID)
	}
	if failed == nil {
		fmt.Fprintln(e.stderr, "Every answer was compared with the right one.")
	}
	a, err := set.Answer(x.Report())
	if err != nil {
		return errors.Join(err, failed)
	}
	if !all && len(a.Tables) > 1 {
		a.Tables = a.Tables[:1]
		a.Tables[0].Note += "\nWith -v: CPU time, bytes and syncs of each commit and read."
	}
	return errors.Join(report.WriteTables(e.stdout, a.Tables), failed)
}

// here returns the engines that this program or an installed one links. They
// are the default of a user who names none; a note mentions each of the others.
func here(e *env, command string) (names []string) {
	for _, name := range engine.Names() {
		if _, err := programFor(e.ctx, name, false); err != nil {
			fmt.Fprintf(e.stderr, "%s: %s is left out: %v\n", command, name, err)
			continue
		}
		names = append(names, name)
	}
	return names
}
