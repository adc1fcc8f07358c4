package probe

import (
	"maps"
	"slices"
	"time"
)

// usage is counters of a process; read and written are -1 where the system
// does not tell.
type usage struct {
	cpu           time.Duration
	read, written int64 // bytes from and to the disk
}

// process is what the system tells of one process. Its usage includes the
// children that have ended and that it has waited for.
type process struct {
	parent  int
	started time.Duration // since the system began
	used    usage
}

// tracker adds up what processes use that come and go.
type tracker struct {
	last map[int]process
	when time.Duration // of the last look, since the system began

	total usage
	next  time.Time // when memory is looked at again
}

// look takes the processes and all that descend from them into a sample; this
// process alone when there are none.
func (t *tracker) look(pids []int, sample *Sample) error {
	when, err := uptime()
	if err != nil {
		return err
	}
	found, err := processes(pids)
	if err != nil || len(found) == 0 {
		return err
	}
	t.count(found)
	t.last, t.when = found, when
	total := t.total
	sample.CPU = &total.cpu
	if total.read >= 0 {
		sample.Read, sample.Written = &total.read, &total.written
	}
	return t.remember(found, sample)
}

// count adds what was used since the last look.
func (t *tracker) count(found map[int]process) {
	var before, now usage
	for pid, p := range found {
		now.add(p.used)
		if _, seen := t.last[pid]; !seen && (t.last == nil || p.started < t.when) {
			// It has joined later than it began: it counts from now on.
			before.add(p.used)
		}
	}
	for pid, p := range t.last {
		if t.survives(pid, found) {
			before.add(p.used)
		}
	}
	t.total.cpu += max(now.cpu-before.cpu, 0)
	if t.total.read < 0 || now.read < 0 || before.read < 0 {
		t.total.read, t.total.written = -1, -1
		return
	}
	t.total.read += max(now.read-before.read, 0)
	t.total.written += max(now.written-before.written, 0)
}

// survives tells whether what a process had used by the last look is still in
// the counters: in its own, or in those of an ancestor that has waited for it.
func (t *tracker) survives(pid int, found map[int]process) bool {
	for p, ok := t.last[pid]; ok; p, ok = t.last[pid] {
		if now, lives := found[pid]; lives && now.started == p.started {
			return true
		}
		pid = p.parent
	}
	return false
}

func (u *usage) add(o usage) {
	u.cpu += o.cpu
	if u.read < 0 || o.read < 0 {
		u.read, u.written = -1, -1
		return
	}
	u.read += o.read
	u.written += o.written
}

// remember takes memory into a sample, unless looking at it would take more
// than a hundredth of a core.
func (t *tracker) remember(found map[int]process, sample *Sample) error {
	begin := time.Now()
	if begin.Before(t.next) {
		return nil
	}
	bytes, err := memory(slices.Collect(maps.Keys(found)))
	t.next = begin.Add(100 * time.Since(begin))
	if err == nil && bytes > 0 {
		sample.RSS = &bytes
	}
	return err
}
