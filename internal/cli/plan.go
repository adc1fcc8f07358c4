package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/schemas"
)

// The cost of an answer is estimated, generously: the measurement stops at its
// time limit whatever the estimate was.
const (
	defaultLoadRate = 20_000                 // rows a second that an unknown engine loads
	indexCost       = 0.25                   // of the time of a row, that each index adds
	copyRate        = 400_000                // rows a second for work around a phase: copying a store, comparing answers
	phaseOverhead   = 500 * time.Millisecond // for each phase, however small the store
	processOverhead = 2 * time.Second        // for each process, including its test of the machine
	plannedShare    = 0.9                    // share of the time that is planned with
	leastPhase      = 500 * time.Millisecond
	mostPhase       = 10 * time.Second
	loadShare       = 0.15 // share of the time for loading the base profile at its first size
	v1Size          = 0.78 // of the largest size of the base profile, which I5 loads in addition
	writePhases     = 4    // of D1, with its 2 variants; C1 has 4 of each mix, with 2 variants
	loadPhases      = 15   // of I3 and I5 together, which are variants
)

// request is the request to varve answer, with the available time, disk space
// and data.
type request struct {
	engines []bench.Engine
	layouts []string
	sizes   []float64 // factors, the smallest first
	repeats int
	mixes   int
	v1      float64       // fraction of the largest size that I5 loads in addition
	phase   time.Duration // of the earlier run that is continued; 0: to be chosen
	data    source.Amount // rows and bytes at size 1
	time    time.Duration
	free    uint64 // bytes
}

// plan has the experiments to measure, and their sizes.
type plan struct {
	request
	takes   time.Duration
	disk    uint64
	dropped []string // parts that were left out, with the reasons
}

// fit reduces the request until time and disk suffice. First it drops the
// largest sizes, down to two, because growth needs two; then repeats; then
// engines and layouts, the last ones first; then the second size. If the disk
// is too small, it always drops a size.
func (want *request) fit() *plan {
	p := &plan{request: *want}
	for !p.fits() {
		switch {
		case len(p.sizes) > 2, len(p.sizes) == 2 && p.disk+spareSpace > p.free:
			p.sizes = p.sizes[:len(p.sizes)-1]
		case p.repeats > 1 && p.disk+spareSpace <= p.free:
			p.repeats--
		case len(p.engines) > 1:
			p.engines = p.engines[:len(p.engines)-1]
		case len(p.layouts) > 1:
			p.layouts = p.layouts[:len(p.layouts)-1]
		case len(p.sizes) > 1:
			p.sizes = p.sizes[:1]
		default: // if it does not fit: the missing parts are listed at the end
			p.phase = cmp.Or(p.phase, leastPhase)
			p.noteDropped(want)
			return p
		}
	}
	p.noteDropped(want)
	return p
}

// fits sets the duration of phases and computes the needs of the plan. It
// reports whether they are met.
func (p *plan) fits() bool {
	// Compute the disk space of all stores at all sizes, and of a copy that is
	// written to.
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	rows, runs := float64(p.data.Rows), float64(p.repeats*len(p.layouts)*len(p.engines))
	last, all := p.sizes[len(p.sizes)-1], 0.0
	for _, size := range append(slices.Clone(p.sizes), p.v1*last) {
		all += size
	}
	largest := uint64(0)
	p.disk = 0
	for _, layout := range p.layouts {
		once := float64(diskBytes(p.data, layout))
		largest = max(largest, uint64(last*once))
		p.disk += uint64(all * once * float64(len(p.engines)))
	}
	p.disk += largest

	// Compute the seconds outside of phases, and the number of phases.
	work, phases := p.loading(all), 0.0
	for _, size := range p.sizes {
		work += runs * float64(2+2*p.mixes) * (phaseOverhead.Seconds() + size*rows/copyRate)
		phases += runs * float64(writePhases+4*p.mixes)
	}
	work += runs * loadPhases * (phaseOverhead.Seconds() + last*rows/copyRate)
	phases += runs * loadPhases
	work += float64(p.repeats*len(p.engines)*(2*len(p.sizes)+2)) * processOverhead.Seconds()

	// Divide the rest of the time by the phases.
	phase := cmp.Or(p.phase, min(seconds((plannedShare*p.time.Seconds()-work)/phases).Truncate(100*time.Millisecond), mostPhase))
	p.takes = seconds(work + phases*max(phase, leastPhase).Seconds())
	if p.disk+spareSpace > p.free || p.takes > p.time || phase < leastPhase && p.phase == 0 {
		return false
	}
	p.phase = phase
	return true
}

// loading estimates the seconds to load a multiple of the data into every
// engine and layout.
func (p *plan) loading(times float64) (seconds float64) {
	for _, layout := range p.layouts {
		for _, e := range p.engines {
			seconds += loading(e, times*float64(p.data.Rows), float64(schemas.CountIndexes(layout)))
		}
	}
	return seconds
}

// loading estimates the seconds in which an engine loads rows into a table with
// indexes.
func loading(e bench.Engine, rows, indexes float64) float64 {
	return rows * (1 + indexCost*indexes) / cmp.Or(engine.Find(e.Name).Loads, defaultLoadRate)
}

// takes estimates how long an experiment takes on engines, including loading
// its data sets; 0 if unknown.
func takes(x lab.Experiment, o lab.Options, engines []bench.Engine, repeats int) time.Duration {
	seconds := 0.0
	for _, e := range engines {
		list, err := x.Variants(o, e)
		if err != nil {
			return 0
		}
		loaded, once, each := map[string]bool{}, 0.0, processOverhead.Seconds()
		for i := range list {
			v := &list[i]
			n, _ := strconv.ParseFloat(v.Keys.Get("indexes"), 64) // of a table; a layout's own are not counted
			if layout := v.Keys.Get("layout"); slices.Contains(schemas.EntityLayouts(), layout) {
				n += float64(schemas.CountIndexes(layout))
			}
			if set := fmt.Sprint(v.Keys.Get("layout"), v.Set); !loaded[set] {
				loaded[set] = true
				once += loading(e, v.Set, n)
			}
			each += phaseOverhead.Seconds() + v.Set/copyRate + v.Phases*o.Phase.Seconds() + loading(e, v.Rows, n)
		}
		seconds += once + float64(repeats)*each
	}
	return time.Duration(seconds * float64(time.Second))
}

// patience returns how long an experiment may run before it counts as hanging.
// For the user's data there is no estimate.
func patience(x lab.Experiment, o lab.Options, e bench.Engine) time.Duration {
	if guess := takes(x, o, []bench.Engine{e}, 1); guess > 0 {
		return time.Hour + 10*guess
	}
	return 24 * time.Hour
}

// formatMinutes formats an estimate in whole minutes.
func formatMinutes(d time.Duration) string {
	if d == 0 {
		return "?"
	}
	return strings.TrimSuffix((d + time.Minute - 1).Truncate(time.Minute).String(), "0s")
}

// noteDropped records the parts of the request that were dropped, and the time and disk
// that they would need.
func (p *plan) noteDropped(want *request) {
	if n := len(p.sizes); n < len(want.sizes) {
		p.dropped = append(p.dropped, "sizes "+factors(want.sizes[n:]))
	}
	if p.repeats < want.repeats {
		p.dropped = append(p.dropped, fmt.Sprintf("%d of %d repeats", want.repeats-p.repeats, want.repeats))
	}
	for _, e := range want.engines[len(p.engines):] {
		p.dropped = append(p.dropped, e.Label())
	}
	for _, layout := range want.layouts[len(p.layouts):] {
		p.dropped = append(p.dropped, "layout "+layout)
	}
	if len(p.dropped) == 0 {
		return
	}
	all := &plan{request: *want}
	all.fits()
	enough := (all.takes*10/9 + time.Minute).Round(time.Minute) // the plan uses nine tenths of the given time
	p.dropped[len(p.dropped)-1] += fmt.Sprintf("; with --time %s and %s of disk nothing is left out", enough, size(all.disk+spareSpace))
}

// print prints the plan with its time and disk space.
func (p *plan) print(out io.Writer, data, unit string) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "data\t%s: %d entities, %d rows, %s of payload\n", data, p.data.Entities, p.data.Rows, size(p.data.PayloadBytes))
	fmt.Fprintf(w, "engines\t%s\nlayouts\t%s\n", labels(p.engines), strings.Join(p.layouts, ", "))
	fmt.Fprintf(w, "sizes\t%s times %s\n", factors(p.sizes), unit)
	fmt.Fprintf(w, "measured\t%d times, in phases of %s\n", p.repeats, p.phase)
	fmt.Fprintf(w, "time\tabout %s, at most %s\n", p.takes.Round(time.Second), p.time)
	fmt.Fprintf(w, "disk\tabout %s of %s that are free\n", size(p.disk), size(p.free))
	if len(p.dropped) > 0 {
		fmt.Fprintf(w, "left out\t%s\n", strings.Join(p.dropped, ", "))
	}
	_ = w.Flush()
}

func factors(sizes []float64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", ", "), "[]")
}
