package crashtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// Crash is the trial that kills workers with SIGKILL, and also the server
// processes of engines that have any. The page cache survives a process, so
// nothing acknowledged may be missing at any level of durability. Exception: a
// server that buffers its log in memory may lose the end unless commits are
// durable.
func Crash(level driver.Durability) Trial { return crash(level, false) }

// crash can also make a trial whose workers are deliberately broken; see
// workerConfig.EarlyAck.
func crash(level driver.Durability, earlyAck bool) Trial {
	return Trial{
		Name: levelName("crash", level), Turn: 25,
		Skip: func(c Cell) string { return c.skipLevel(level) },
		Run: func(ctx context.Context, c Cell, rng *rand.Rand, r *Row) error {
			return runWorkers(ctx, c.Faults, r, func(last bool) (ending, error) {
				config := c.config(rng, c.Dir, "durability", string(level))
				config.Lossy, config.EarlyAck, config.CheckOnly = level != driver.Durable && c.ownLog(), earlyAck, last
				if last {
					return runWorker(ctx, config, nil)
				}
				p := drawPlan(rng, c)
				config.After = rng.IntN(12)
				if p.phase != phaseOpen && p.phase != phaseCheck {
					config.Target = p.phase
				}
				end, err := runWorker(ctx, config, p)
				if end.killed {
					r.Fault(end.phase)
					r.Outcomes[map[bool]string{false: "killed worker", true: "killed server"}[end.server]]++
				}
				return end, err
			})
		},
	}
}

// runWorkers runs workers on one store, one after the other: n that meet a fault,
// and a last one that only checks. It counts their outcomes, and ends with the
// first violation.
func runWorkers(ctx context.Context, n int, r *Row, live func(last bool) (ending, error)) error {
	broken := len(r.Violations)
	for i := range n + 1 {
		end, err := live(i == n)
		if ctx.Err() != nil || end.unusable {
			return nil
		}
		if end.checked {
			r.Outcomes["reopened"]++
			r.Outcomes["found unacknowledged"] += end.found
			r.Outcomes["steps lost"] += end.lost
			r.Outcomes["faults that lost"] += min(end.lost, 1)
		}
		if err := r.judge(end, err); err != nil || len(r.Violations) > broken {
			return err
		}
	}
	return nil
}

// judge records the finding of a worker that ended. After a process of the
// engine was killed, failures of the worker are expected.
func (r *Row) judge(end ending, err error) error {
	switch {
	case errors.Is(err, errHangs):
		r.Violate("%v", err)
	case err != nil:
		return fmt.Errorf("%s: %w", r.Trial, err)
	case end.broken:
		r.Violate("%s", end.message)
	case end.killed && (end.server || end.message == "") || end.code == exitDone:
	case end.message != "":
		r.Violate("in phase %q: %s", end.phase, end.message)
	default:
		r.Violate("the worker ended with status %d in phase %q: %s", end.code, end.phase, tail(end.stderr))
	}
	return nil
}

// drawPlan draws which process to kill and when: half of the times near the
// beginning of a certain phase, on a logarithmic scale, otherwise in whatever
// phase the worker is.
func drawPlan(rng *rand.Rand, c Cell) *plan {
	p := &plan{pause: time.Duration(rng.IntN(20)) * time.Millisecond}
	switch n := rng.IntN(10); {
	case n < 3:
		p.server = 1 // the first one, which starts the others
	case n == 3:
		p.server = 1 + rng.IntN(1<<16)
	}
	p.delay = time.Duration(rng.IntN(60_000)) * time.Microsecond
	switch n := rng.IntN(100); {
	case n < 14:
		p.phase = phaseOpen
	case n < 20:
		p.phase = phaseCheck
	case n >= 50:
		targets := targets(c)
		p.phase = targets[rng.IntN(len(targets))]
		p.delay = p.delay / 8 >> rng.IntN(10)
	}
	return p
}

// targets are the phases in which workers of a cell are killed.
func targets(c Cell) []string {
	if c.Layout == EventsLayout {
		return []string{phaseAppend, phaseAppend, phaseCheckpoint, phaseReopen}
	}
	list := []string{stepApply, stepLoad, stepRewind, stepPrune, phaseCheckpoint, phaseReopen}
	if schemas.HasRuns(c.Layout) { // the others put nothing off
		list = append(list, phaseMerge, phaseMerge)
	}
	return list
}

// tail is the last part of a worker's output.
func tail(s string) string { return s[max(0, len(s)-2000):] }
