package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// tick is the unit of times in /proc, the same on all common architectures.
const tick = 10 * time.Millisecond

// usage is counters of processes.
type usage struct {
	cpu           time.Duration
	read, written int64 // bytes from and to the disk
}

func (u *usage) add(o usage, times int64) {
	u.cpu += o.cpu * time.Duration(times)
	u.read += o.read * times
	u.written += o.written * times
}

// process is what the system tells of one process. Its usage includes the
// children that have ended and that it has waited for.
type process struct {
	procfs.ProcStat
	used usage
}

// tracker adds up what processes use that come and go.
type tracker struct {
	last map[int]process
	all  map[int]uint64 // start times of everybody at the last look

	total usage
	blind bool      // the traffic of some process may not be seen
	next  time.Time // when memory is looked at again
}

// look takes the processes and all that descend from them into a sample; this
// process alone when there are none.
func (t *tracker) look(pids []int, sample *Sample) error {
	found, all, err := t.find(pids)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrUnsupported
	}
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if len(found) == 0 {
		return nil
	}
	t.count(found)
	t.last, t.all = found, all
	total := t.total
	sample.CPU = &total.cpu
	if !t.blind {
		sample.Read, sample.Written = &total.read, &total.written
	}
	return t.remember(found, sample)
}

// find returns those of the given processes that live, with all that descend from
// them, and when everybody started. For none it is this process alone: the engine is a
// part of it, and what it runs besides is not.
func (t *tracker) find(pids []int) (found map[int]process, all map[int]uint64, err error) {
	found, all = map[int]process{}, map[int]uint64{}
	if len(pids) == 0 {
		self, err := procfs.Self()
		if err != nil {
			return nil, nil, err
		}
		stat, err := self.Stat()
		stat.CUTime, stat.CSTime = 0, 0
		t.include(found, stat)
		return found, all, err
	}
	list, err := procfs.AllProcs()
	if err != nil {
		return nil, nil, err
	}
	var stats []procfs.ProcStat
	for _, p := range list {
		if stat, err := p.Stat(); err == nil { // else it has ended since
			stats = append(stats, stat)
			all[p.PID] = stat.Starttime
		}
	}
	for before := -1; before < len(found); {
		before = len(found)
		for _, stat := range stats {
			_, have := found[stat.PID]
			_, child := found[stat.PPID]
			if !have && (child || slices.Contains(pids, stat.PID)) {
				t.include(found, stat)
			}
		}
	}
	return found, all, nil
}

// include adds a process with its disk traffic, which only its owner may see.
func (t *tracker) include(found map[int]process, stat procfs.ProcStat) {
	p := process{ProcStat: stat}
	p.used.cpu = time.Duration(int64(stat.UTime+stat.STime)+int64(stat.CUTime+stat.CSTime)) * tick
	proc, err := procfs.NewProc(stat.PID)
	if err == nil {
		var io procfs.ProcIO
		io, err = proc.IO()
		p.used.read, p.used.written = int64(io.ReadBytes), int64(io.WriteBytes)
	}
	if gone(err) {
		return
	}
	t.blind = t.blind || err != nil
	found[stat.PID] = p
}

// gone tells that a process ended between being listed and being read.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// count adds what was used since the last look.
func (t *tracker) count(found map[int]process) {
	var grown usage
	for pid, p := range found {
		// One that has joined later than it began counts from now on.
		_, seen := t.last[pid]
		if seen || t.last != nil && t.all[pid] != p.Starttime {
			grown.add(p.used, 1)
		}
	}
	for pid, p := range t.last {
		if t.survives(pid, found) {
			grown.add(p.used, -1)
		}
	}
	t.total.add(usage{max(grown.cpu, 0), max(grown.read, 0), max(grown.written, 0)}, 1)
}

// survives tells whether what a process had used by the last look is still in
// the counters: in its own, or in those of an ancestor that has waited for it.
func (t *tracker) survives(pid int, found map[int]process) bool {
	for p, ok := t.last[pid]; ok; p, ok = t.last[pid] {
		if now, lives := found[pid]; lives && now.Starttime == p.Starttime {
			return true
		}
		pid = p.PPID
	}
	return false
}

// remember takes memory into a sample, unless looking at it would take more than a
// hundredth of a core. What several processes share, such as Postgres' buffers, counts
// once: it is the sum of their proportional sets.
func (t *tracker) remember(found map[int]process, sample *Sample) error {
	begin := time.Now()
	if begin.Before(t.next) {
		return nil
	}
	var bytes int64
	for pid, p := range found {
		if len(found) == 1 {
			bytes = int64(p.ResidentMemory())
			break
		}
		proc, err := procfs.NewProc(pid)
		if err != nil {
			continue // it has ended
		}
		set, err := proportional(proc)
		if err != nil && !gone(err) {
			return fmt.Errorf("probe: %w", err)
		}
		bytes += set
	}
	t.next = begin.Add(100 * time.Since(begin))
	if bytes > 0 {
		sample.RSS = &bytes
	}
	return nil
}
