package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/experiment"
)

// compareCmd measures engines one after the other, each in a process of its
// own, so that memory, page cache and a crash are its own.
type compareCmd struct {
	engineFlags
	recordFlags
	experiment.FirstOptions
	Engines []string `arg:"" optional:"" help:"Engines to measure: ${engines}; all when none is given. The URL of a server of yours, postgres://host/db, measures that, in a schema of its own."`
	Layout  string   `help:"Entity layout." default:"arkiv"`
	Dir     string   `help:"Directory for the databases, which are removed afterwards; the system's temporary directory when not given." type:"existingdir"`
}

// Run compares. It prints what it has when an engine fails, and fails then.
func (c *compareCmd) Run(e *env) error {
	if _, err := bench.ParseProfile(c.Profile); err != nil {
		return usageError{err}
	}
	if c.Entities < 100 || c.Commits < 1 {
		return usageError{errors.New("--entities must be 100 or more and --commits 1 or more")}
	}
	if len(c.Engines) == 0 {
		c.Engines = c.here(e)
	}
	o := experiment.Options{Seed: 1, Layouts: []string{c.Layout}, First: &c.FirstOptions}
	x := entry{engineFlags: c.engineFlags, recordFlags: c.recordFlags, id: "Q1", engines: c.Engines, options: o, child: child{dir: c.Dir}, lead: printManifests}
	results, err := x.run(e)
	if results != nil && !c.JSON {
		err = errors.Join(err, sameDigests(results))
	}
	return err
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

// printManifests says what the figures are of: the machine, and each engine's settings.
func printManifests(out io.Writer, results *result.Results) error {
	said := map[string]bool{}
	for i := range results.Records {
		r := &results.Records[i]
		var m bench.Manifest
		if err := results.Manifest(r, &m); err != nil {
			return err
		}
		name := r.Config.Get("engine")
		if said[name] || len(m.Settings) == 0 {
			continue
		}
		if len(said) == 0 {
			h := m.Host
			fmt.Fprintf(out, "%d cores, %.0f GiB, %s on %s, fsync %s. Settings as read back:\n",
				h.Cores, float64(h.MemoryBytes)/(1<<30), h.Kernel, cmp.Or(h.Filesystem, "an unknown file system"), h.Fsync.Median.Round(time.Microsecond))
		}
		said[name] = true
		list := make([]string, len(m.Settings))
		for i, s := range m.Settings {
			list[i] = s.Name + "=" + s.Value
		}
		fmt.Fprintf(out, "  %s %s: %s\n", name, m.Engine.Version, strings.Join(list, ", "))
	}
	if len(said) == 0 {
		return nil
	}
	_, err := fmt.Fprintln(out, "\nEvery answer was compared with the right one, and so was the digest of each store.")
	return err
}

// sameDigests fails when engines that were given the same hold something else.
func sameDigests(results *result.Results) error {
	first := map[string]result.Record{}
	for _, r := range results.Records {
		if r.Error != "" || len(r.Notes) == 0 {
			continue
		}
		name := r.Name + "/" + r.Config.Without("engine").String()
		if f, ok := first[name]; ok && f.Notes[0] != r.Notes[0] {
			return fmt.Errorf("%w: %s: %s of %s, %s of another engine", bench.ErrMismatch, r.Name, r.Notes[0], r.Config.Get("engine"), f.Notes[0])
		} else if !ok {
			first[name] = r
		}
	}
	return nil
}
