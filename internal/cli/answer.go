package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/internal/answer"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store/driver"
)

// answerCmd answers the five questions: it makes a plan that fits the time and
// the disk, loads, measures, and prints the answers.
type answerCmd struct {
	engineFlags
	Source  string        `arg:"" optional:"" store:"" name:"source" help:"Data to load: a block tar, an Arkiv SQLite database, or the URL of a store. By default the base profile, at a scale that fits the time."`
	Time    time.Duration `min:"1s" max:"720h" help:"Time for all of it. The parts that do not fit are named at the start and left out." default:"20m"`
	Engines []string      `help:"Engines to measure, or URLs of your own servers. By default all that can run here."`
	Layouts []string      `help:"Layouts to measure." default:"arkiv,compact"`
	Sizes   []float64     `min:"1" max:"1000" help:"Sizes, as multiples of the source or of the base profile at the scale that fits." default:"1,2,5,10"`
	Repeats int           `min:"1" max:"1000" help:"How often everything is measured. Fewer than four repeats cannot show a difference." default:"4"`
	Out     string        `help:"Directory of the results and of the page report.html. The same command continues from the results that it has." default:"results/answer" type:"path"`
	From    string        `help:"Answer from the results of this directory, and measure nothing." type:"path"`
	JSON    bool          `help:"Print the answers as JSON."`
}

// Run answers. It prints the results even if a part failed or the time was up,
// and fails if a part failed.
func (c *answerCmd) Run(e *env) error {
	if c.From != "" {
		set, err := loadSet(e, c.From)
		if err != nil {
			return err
		}
		page, answers, err := pageOf(set, answerTitle)
		if err != nil {
			return err
		}
		return c.print(e, page, answers)
	}
	if g, generated, err := source.ParseGenerated(c.Source); generated { // before the disk is measured
		_, wrong := g.Plan()
		if err := cmp.Or(err, wrong); err != nil {
			return err
		}
	}
	sitting := time.Now().UTC().Format(sittingForm)
	began, failed := c.measure(e, sitting)
	switch {
	case !began:
		return failed
	case e.ctx.Err() != nil:
		return fmt.Errorf("%w; varve answer --from %s prints the answers so far", failed, c.Out)
	}
	set, err := loadSet(e, c.Out)
	if err != nil {
		return errors.Join(failed, fmt.Errorf("nothing was measured in %s; give more with --time", c.Time))
	}
	page, answers, err := pageOf(set, answerTitle)
	if err != nil {
		return errors.Join(failed, err)
	}
	// Take the failures from the results, which also have parts that failed
	// before the time was up.
	failed = cmp.Or(excluded(set, func(l *benchfmt.Result) bool { return l.GetConfig("sitting") == sitting }), failed)
	path := filepath.Join(c.Out, "report.html")
	if _, err := savePage(path, page, report.WriteHTML); err != nil {
		return errors.Join(err, failed)
	}
	fmt.Fprintf(e.stderr, "answer: %s has every table; varve answer --from %s says this again\n", path, c.Out)
	return errors.Join(c.print(e, page, answers), failed)
}

// measure loads and measures within the time limit. It reports whether
// measuring began.
func (c *answerCmd) measure(e *env, sitting string) (began bool, err error) {
	deadline := time.Now().Add(c.Time)
	o := lab.Options{Seed: 1, Layouts: c.Layouts, Probe: true, Sitting: sitting}
	if len(c.Engines) == 0 {
		c.Engines = here(e, "answer")
	}
	engines, err := c.set(&o, c.Engines)
	if err != nil {
		return false, err
	}
	want := &request{engines: engines, layouts: c.Layouts, sizes: slices.Compact(slices.Sorted(slices.Values(c.Sizes))), repeats: c.Repeats, mixes: len(mix.Names), v1: v1Size, time: c.Time}
	begun, err := c.begin(e, want, &o)
	if err != nil {
		return false, err
	}
	p := want.fit()
	unit := "the source"
	if c.Source == "" {
		unit = fmt.Sprintf("the base profile at scale %v", begun.Base)
	}
	p.print(e.stderr, cmp.Or(driver.Redact(c.Source), "base profile"), unit)
	if p.disk+spareSpace > p.free {
		return false, fmt.Errorf("%w: one engine with one layout needs about %s and %s are free; set %s to a directory on another disk", driver.ErrDiskFull, size(p.disk+spareSpace), size(p.free), bench.CacheEnv)
	}
	begun.Phase = p.phase
	if err := begun.keep(c.Out); err != nil {
		return false, err
	}
	within := *e
	var cancel context.CancelFunc
	within.ctx, cancel = context.WithDeadline(e.ctx, deadline)
	defer cancel()
	stages, err := p.stages(begun.Base)
	if err != nil {
		return false, err
	}
	o.Layouts, o.Phase = p.layouts, p.phase
	r := &runner{stages: stages, engines: p.engines, options: o, repeats: p.repeats, out: c.Out, kept: true, verbose: c.Verbose}
	err = r.run(&within)
	if e.ctx.Err() == nil && within.ctx.Err() != nil {
		fmt.Fprintln(e.stderr, "answer: the time is up; run the same command again to go on")
		return true, nil
	}
	return true, err
}

// stages returns a stage for each size: writes and reads, and at the largest
// size also both at once.
func (p *plan) stages(base float64) (list []stage, _ error) {
	for i, size := range p.sizes {
		ids := []string{"D1", "C1"}
		if i == len(p.sizes)-1 {
			ids = append(ids, "I3", "I5")
		}
		found, err := lab.Find(ids)
		if err != nil {
			return nil, err
		}
		list = append(list, stage{found, rounded(size*base, 6)})
	}
	return list, nil
}

// answerState has the state that repeated calls of an answer's command share.
type answerState struct {
	Source     string            `json:"source"`
	Durability driver.Durability `json:"durability"`
	Memory     int64             `json:"memory"`
	Base       float64           `json:"base"` // scale of the base profile at size 1; 1 of a source
	Phase      time.Duration     `json:"phase"`
}

const begunFile = "answer.json"

// begin prepares the source, finds the limits for the plan, and resumes an
// earlier run.
func (c *answerCmd) begin(e *env, want *request, o *lab.Options) (*answerState, error) {
	b := &answerState{Source: driver.Redact(c.Source), Durability: o.Durability, Memory: o.Memory, Base: 1}
	text, err := os.ReadFile(filepath.Join(c.Out, begunFile))
	if err == nil {
		var before answerState
		if err := json.Unmarshal(text, &before); err != nil {
			return nil, fmt.Errorf("%s: %w; give another --out", filepath.Join(c.Out, begunFile), err)
		}
		b.Base, b.Phase = before.Base, before.Phase
		if *b != before {
			return nil, usageError{fmt.Errorf("%s has the results of another source, durability or memory; give another --out", c.Out)}
		}
	} else if results, _ := filepath.Glob(filepath.Join(c.Out, "*.txt")); len(results) > 0 {
		return nil, usageError{fmt.Errorf("%s has results of another command: varve answer --from %s answers from them; give another --out", c.Out, c.Out)}
	}
	want.phase = b.Phase
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return nil, err
	}
	cache, err := bench.OpenCache("")
	if err != nil {
		return nil, err
	}
	if want.free, err = filesync.Free(cache.Root()); err != nil {
		return nil, err
	}
	if c.Source != "" {
		r := &runner{options: lab.Options{Source: c.Source}}
		if err := r.prepare(e); err != nil {
			return nil, err
		}
		o.Source = r.options.Source
		want.mixes, want.v1 = 1, 0
		t, err := cache.Tar(o.Source)
		if err == nil && t.Rows == 0 {
			err = errors.New("no entities to measure with")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Source, err)
		}
		want.data = source.Amount{Entities: t.Entities, Blocks: uint64(t.Blocks), Rows: t.Rows, PayloadBytes: t.Payload}
		return b, nil
	}
	if len(text) == 0 {
		b.Base = want.base()
	}
	want.data, err = source.Generated{Model: "mendoza", Scale: b.Base, Seed: o.Seed}.Plan()
	return b, err
}

// keep saves the state of a run.
func (b *answerState) keep(dir string) error {
	text, err := json.MarshalIndent(b, "", "\t")
	if err != nil {
		return err
	}
	return filesync.Replace(filepath.Join(dir, begunFile), append(text, '\n'), 0o644)
}

// base is the scale of the base profile that can be loaded in its share of the
// time.
func (want *request) base() float64 {
	const probe = 0.01
	data, err := source.Generated{Model: "mendoza", Scale: probe, Seed: 1}.Plan()
	if err != nil {
		return probe
	}
	fits := &plan{request: *want}
	fits.data = data
	share := loadShare * want.time.Seconds() / fits.loading(1+want.v1)
	return rounded(min(max(probe*share, 10*scaler.MinScale), 1), 1)
}

// rounded rounds to significant digits.
func rounded(v float64, digits int) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64) // it was formatted as one
	return v
}

// answerTitle is the title of the page of answers.
const answerTitle = "Varve: answers"

// print prints the answers of a page.
func (c *answerCmd) print(e *env, page *report.Page, answers *answer.Answers) error {
	switch {
	case c.JSON:
		return printJSON(e.stdout, answers)
	case c.Verbose:
		return answers.WriteText(e.stdout)
	}
	return answers.WriteShort(e.stdout, page.Glance)
}
