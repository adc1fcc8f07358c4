package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/experiment"
)

// compareCmd measures engines one after the other, each in a process of its
// own, so that memory, page cache and a crash are its own.
type compareCmd struct {
	labFlags
	Engines  []string `arg:"" optional:"" help:"Engines to measure: ${engines}; all when none is given."`
	Layout   string   `help:"Entity layout." default:"arkiv"`
	Profile  string   `help:"Shape of the generated entities: minimal, typical, large, or with a payload such as typical-256B." default:"typical"`
	Entities int      `help:"Generated entities that the store holds before commits are measured." default:"5000"`
	Commits  int      `help:"Commits to measure, of 100 generated entities each." default:"100"`
	Dir      string   `help:"Directory for the databases, which are removed afterwards; the system's temporary directory when not given." type:"existingdir"`
	Out      string   `help:"Directory of a result set that keeps the measurements, for report and benchstat; a run goes on from what it has." type:"path"`
}

// Run compares. It prints what it has when an engine fails, and fails then.
func (c *compareCmd) Run(e *env) error {
	o, err := c.options(1)
	if err != nil {
		return err
	}
	if _, err := bench.ParseProfile(c.Profile); err != nil {
		return usageError{err}
	}
	if err := knownLayouts(c.Layout); err != nil {
		return err
	}
	if c.Entities < 100 || c.Commits < 1 {
		return usageError{errors.New("--entities must be 100 or more and --commits 1 or more")}
	}
	if len(c.Engines) == 0 {
		c.Engines = engine.Names()
	}
	o.Layouts = []string{c.Layout}
	o.First = &experiment.FirstOptions{Profile: c.Profile, Entities: c.Entities, Commits: c.Commits}
	x := entry{labFlags: c.labFlags, id: "Q1", engines: c.Engines, options: o, out: c.Out, own: true, dir: c.Dir}
	results, err := x.run(e)
	if results != nil && !c.JSON {
		err = errors.Join(err, printManifests(e.stdout, results), sameDigests(results))
	}
	return err
}

// printManifests says what the figures are of: the machine, and each engine's settings.
func printManifests(out io.Writer, results *result.Results) error {
	fmt.Fprintln(out, "\nEvery answer was compared with the right one, and so was the digest of each store. Settings as read back:")
	var host string
	said := map[string]bool{}
	for i := range results.Records {
		r := &results.Records[i]
		var m bench.Manifest
		if err := results.Manifest(r, &m); err != nil {
			return err
		}
		if said[m.Engine.Name] || len(m.Settings) == 0 {
			continue
		}
		said[m.Engine.Name] = true
		list := make([]string, len(m.Settings))
		for i, s := range m.Settings {
			list[i] = s.Name + "=" + s.Value
		}
		fmt.Fprintf(out, "  %s %s: %s\n", m.Engine.Name, m.Engine.Version, strings.Join(list, ", "))
		h := m.Host
		host = fmt.Sprintf("%d cores, %.0f GiB, %s on %s, fsync %s", h.Cores, float64(h.MemoryBytes)/(1<<30), h.Kernel, h.Filesystem, h.Fsync.Median)
	}
	_, err := fmt.Fprintln(out, host)
	return err
}

// sameDigests fails when engines that were given the same hold something else.
func sameDigests(results *result.Results) error {
	of := map[string]string{}
	for i := range results.Records {
		r := &results.Records[i]
		if r.Error != "" || len(r.Notes) == 0 {
			continue
		}
		given := r.Name + "/" + r.Config.Without("engine").String()
		if first, ok := of[given]; ok && first != r.Notes[0] {
			return fmt.Errorf("%w: %s: %s of %s, %s of another engine", bench.ErrMismatch, r.Name, r.Notes[0], r.Config.Get("engine"), first)
		}
		of[given] = r.Notes[0]
	}
	return nil
}
