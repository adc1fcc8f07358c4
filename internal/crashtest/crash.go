package crashtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// Crash is the trial that kills workers with SIGKILL, and of engines with processes
// of their own these as well. Nothing acknowledged may be missing at any level of
// durability, for the page cache survives a process; a server that buffers its log
// itself may lose the tail unless commits are durable.
type Crash struct {
	Worker Command
	Level  driver.Durability // empty means Durable

	// EarlyAck breaks the workers; see WorkerConfig.
	EarlyAck bool

	typical map[string]time.Duration // how long phases take, by engine and phase
}

// Name implements Trial.
func (t *Crash) Name() string { return levelName("crash", t.Level) }

// levelName is the name of a trial on a level of durability.
func levelName(name string, level driver.Durability) string {
	if level == driver.Durable || level == "" {
		return name
	}
	return name + "-" + string(level)
}

// Skip implements Trial: a process can be killed everywhere.
func (t *Crash) Skip(c Cell) string { return skipLevel(c.Engine, t.level()) }

func (t *Crash) level() driver.Durability { return cmp.Or(t.Level, driver.Durable) }

// skipLevel returns why an engine cannot be tried on a level, or "".
func skipLevel(engine string, level driver.Durability) string {
	if slices.Contains(levels(engine), level) {
		return ""
	}
	return "the engine has no durability " + string(level)
}

// Run implements Trial: it kills c.Faults workers, each of which goes on with the
// store that the one before left, and ends with one that only checks.
func (t *Crash) Run(ctx context.Context, c Cell, rng *rand.Rand, r *Report) error {
	for range c.Faults {
		ok, err := t.kill(ctx, c, rng, r)
		if !ok || err != nil {
			return err
		}
	}
	end, err := runWorker(ctx, t.Worker, t.config(c, rng, WorkerConfig{CheckOnly: true}), nil)
	if ctx.Err() != nil {
		return nil
	}
	return judge(t, c, r, end, err)
}

func (t *Crash) config(c Cell, rng *rand.Rand, config WorkerConfig) WorkerConfig {
	config.URL = c.URL("store", append(drawParams(rng, c.Engine), "durability", string(t.level()))...)
	config.Lossy = t.level() != driver.Durable && ownLog(c.Engine)
	config.Layout, config.Journal = c.Layout, filepath.Join(c.Dir, "journal")
	config.Seed, config.EarlyAck, config.NoPrune = rng.Uint64(), t.EarlyAck, c.Seed%2 == 0
	return config
}

// kill lets a worker live for a while. It returns false when the turn is over.
func (t *Crash) kill(ctx context.Context, c Cell, rng *rand.Rand, r *Report) (bool, error) {
	p := t.plan(c, rng)
	config := t.config(c, rng, WorkerConfig{Target: p.phase, After: rng.IntN(12)})
	if p.phase == phaseOpen || p.phase == phaseCheck {
		config.Target = ""
	}
	before := r.Broken()
	end, err := runWorker(ctx, t.Worker, config, p)
	if ctx.Err() != nil {
		return false, nil
	}
	for phase, took := range end.took {
		t.typical[c.Engine+" "+phase] = took
	}
	if end.killed {
		r.Fault(t, c, end.phase)
		r.Count(t, c, "killed "+end.victim.String(), 1)
	}
	if end.checked {
		r.Count(t, c, "reopened", 1)
		r.Count(t, c, "found unacknowledged", end.found)
		r.Count(t, c, "steps lost", end.lost)
	}
	err = judge(t, c, r, end, err)
	return err == nil && r.Broken() == before, err
}

// plan draws whom to kill and when.
func (t *Crash) plan(c Cell, rng *rand.Rand) *plan {
	if t.typical == nil {
		t.typical = map[string]time.Duration{}
	}
	p := &plan{pick: rng.IntN(1 << 16), linger: time.Duration(rng.IntN(20)) * time.Millisecond}
	if n := rng.IntN(10); n < 4 {
		p.victim = [...]victim{killServer, killServer, killServer, killBackend}[n]
	}
	switch n := rng.IntN(100); {
	case n < 14:
		p.phase = phaseOpen
	case n < 20:
		p.phase = phaseCheck
	case n < 50: // whatever it is doing then
		p.delay = time.Duration(rng.IntN(60_000)) * time.Microsecond
		return p
	default:
		targets := t.targets(c)
		p.phase = targets[rng.IntN(len(targets))]
	}
	p.delay = drawDelay(rng, t.typical[c.Engine+" "+p.phase])
	return p
}

// drawDelay draws a time within a phase that takes about so long, half of the times
// near its beginning on a logarithmic scale.
func drawDelay(rng *rand.Rand, typical time.Duration) time.Duration {
	span := max(typical, time.Millisecond) * 5 / 4
	if rng.IntN(2) == 0 {
		return time.Duration(rng.Int64N(int64(span)))
	}
	return span >> rng.IntN(10)
}

// targets are the phases that workers of a cell are sent to.
func (t *Crash) targets(c Cell) []string {
	if c.Layout == EventsLayout {
		return []string{phaseAppend, phaseAppend, phaseCheckpoint, phaseReopen}
	}
	list := []string{stepApply, stepLoad, stepRewind, stepPrune, phaseCheckpoint, phaseReopen}
	if schemas.HasRuns(c.Layout) { // the others put nothing off
		list = append(list, phaseMerge, phaseMerge)
	}
	return list
}

// judge reports a worker that ended with a finding. What fails after a process of
// the engine was killed is what must fail.
func judge(t Trial, c Cell, r *Report, end ending, err error) error {
	switch {
	case errors.Is(err, errHangs):
		r.Violate(t, c, "%v", err)
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", t.Name(), err)
	case end.broken:
		r.Violate(t, c, "%s", end.said)
	case end.killed && (end.victim != killWorker || end.said == "") || end.code == exitDone:
	case end.said != "":
		r.Violate(t, c, "in phase %q: %s", end.phase, end.said)
	default:
		r.Violate(t, c, "the worker ended with status %d in phase %q: %s", end.code, end.phase, tail(end.stderr))
	}
	return nil
}

// tailBytes is how much of what a worker wrote is kept.
const tailBytes = 2000

func tail(s string) string { return s[max(0, len(s)-tailBytes):] }

// String names the victim.
func (v victim) String() string { return [...]string{"worker", "server", "backend"}[v] }
