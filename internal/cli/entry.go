package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// engineFlags are what all that is measured has in common.
type engineFlags struct {
	Durability string `help:"What a commit promises: durable, relaxed or unsafe." default:"durable"`
	Memory     string `help:"Memory of an engine's process and all that it starts, with the page cache; half is for its own caches." default:"1GiB"`
}

// recordFlags are what commands that show one experiment have in common.
type recordFlags struct {
	Out     string `help:"Directory that keeps the results, in the Go benchmark format, for report, answer and benchstat, and from which a run goes on; none are kept when not given." type:"path"`
	Repeats int    `min:"1" max:"1000" help:"How often everything is measured: in turns over the engines, each time in another order with other questions." default:"3"`
}

// set gives options what the flags say, checks the names of layouts, and returns the
// engines of names and URLs.
func (f *engineFlags) set(o *lab.Options, engines []string) (list []bench.Engine, err error) {
	o.Durability, err = driver.ParseDurability(f.Durability)
	memory, fault := store.ParseBytes(f.Memory)
	if o.Memory = memory; fault != nil {
		fault = fmt.Errorf("--memory: %w", fault)
	}
	list, unknown := toMeasure(engines)
	err = cmp.Or(unknown, known("layout", o.Layouts, schemas.EntityLayouts()), err, fault)
	if err != nil {
		err = usageError{err}
	}
	return list, err
}

// labels are the names of engines in results.
func labels(engines []bench.Engine) string {
	list := make([]string, len(engines))
	for i, engine := range engines {
		list[i] = engine.Label()
	}
	return strings.Join(list, ", ")
}

// known refuses names of a kind that are not among all of it.
func known(kind string, names, all []string) error {
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("unknown %s %q; known are %s", kind, name, strings.Join(all, ", "))
		}
	}
	return nil
}

// show prints the results of an experiment, which measure puts into a directory: that of Out, or
// one for this time only. What it fails with comes after what there is; that answers were right is
// said only where nothing failed.
func (f *recordFlags) show(e *env, id string, measure func(out string) error) (err error) {
	out := f.Out
	if out == "" {
		if out, err = os.MkdirTemp("", "varve-"+id+"-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(out)) }()
	}
	failed := measure(out)
	if e.ctx.Err() != nil {
		return failed
	}
	set, err := loadSet(e, out)
	if err != nil {
		return cmp.Or(failed, err)
	}
	if failed == nil {
		failed = failure(set, id)
	}
	if failed == nil {
		fmt.Fprintln(e.stderr, "Every answer was compared with the right one.")
	}
	return errors.Join(report.WriteText(e.stdout, set, id), failed)
}

// excluded are the errors of the runs of a set that did not end well.
func excluded(set *report.Set, of func(l *benchfmt.Result) bool) error {
	var failed []error
	for _, l := range set.Excluded {
		if of(l) {
			failed = append(failed, fmt.Errorf("%s of %s, repeat %s: %s", l.Name, l.GetConfig("experiment"), l.GetConfig("repeat"), l.GetConfig("excluded")))
		}
	}
	return errors.Join(failed...)
}

// failure is the error of the runs of an experiment that did not end well, and of stores that
// were given the same and hold something else; nil for none.
func failure(set *report.Set, experiment string) error {
	of := func(l *benchfmt.Result) bool { return l.GetConfig("experiment") == experiment }
	failed := excluded(set, of)
	first := map[string]*benchfmt.Result{}
	for _, l := range set.Lines {
		digest := l.GetConfig(lab.DigestKey)
		if !of(l) || digest == "" {
			continue
		}
		given := storeKeys.ReplaceAllString(string(l.Name), "")
		other := first[given]
		if other == nil {
			first[given] = l
		} else if want := other.GetConfig(lab.DigestKey); digest != want {
			failed = errors.Join(failed, fmt.Errorf("%w: %s holds %s, %s holds %s", bench.ErrMismatch, l.Name, digest, other.Name, want))
		}
	}
	return failed
}

// storeKeys are what stores differ in that are given the same.
var storeKeys = regexp.MustCompile(`/(engine|layout)=[^/]*`)

// told shows the progress of data sets.
func told(e *env) func(name, unit string, total int64) bench.Progress {
	return func(name, unit string, total int64) bench.Progress {
		return startBar(e.stderr, name, unit, total)
	}
}

// measureHere runs an experiment in this process, or with renew in one that takes its place.
func measureHere(e *env, engine bench.Engine, out string, o lab.Options, found lab.Experiment, renew func() error) error {
	l := &lab.Lab{
		Options: o, Engine: engine, Renew: renew,
		Log: func(format string, args ...any) { fmt.Fprintf(e.stderr, "  "+format+"\n", args...) },
	}
	var err error
	if l.Cache, err = bench.OpenCache(""); err != nil {
		return err
	}
	l.Cache.Progress = told(e)
	set, err := lab.OpenSet(out)
	if err == nil {
		err = l.Run(e.ctx, found, set)
	}
	return cmp.Or(e.ctx.Err(), err) // a server may put what was cancelled in words of its own
}
