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

// tracker follows a set of processes that come and go.
type tracker struct {
	most int64 // largest sum of bytes read from the disk so far
	next time.Time
}

// sample adds the figures of the processes and all their descendants to a
// sample; without pids, of this process alone.
func (t *tracker) sample(pids []int, sample *Sample) error {
	found, err := find(pids)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrUnsupported
	}
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	sum, seen := int64(0), len(found) > 0
	for pid := range found { // with the children that have ended and that it has waited for
		io, err := counters(pid)
		sum, seen = sum+int64(io.ReadBytes), seen && err == nil
	}
	if seen {
		// The sum falls briefly when a child has ended and its parent has not
		// yet taken over its counters.
		t.most = max(t.most, sum)
		sample.Read = new(t.most)
	}
	return t.remember(found, sample)
}

// find returns the given processes that are alive, with all their descendants.
// Without pids it returns only this process: the engine runs in it, and its
// children belong to something else.
func find(pids []int) (found map[int]procfs.ProcStat, err error) {
	found = map[int]procfs.ProcStat{}
	if len(pids) == 0 {
		self, err := procfs.Self()
		if err != nil {
			return nil, err
		}
		stat, err := self.Stat()
		found[stat.PID] = stat
		return found, err
	}
	list, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	var stats []procfs.ProcStat
	for _, p := range list {
		if stat, err := p.Stat(); err == nil { // else it has ended since
			stats = append(stats, stat)
		}
	}
	for before := -1; before < len(found); {
		before = len(found)
		for _, stat := range stats {
			if _, child := found[stat.PPID]; child || slices.Contains(pids, stat.PID) {
				found[stat.PID] = stat
			}
		}
	}
	return found, nil
}

// counters returns the bytes that a process has read and written; zero if it
// has ended. Only the owner may read them.
func counters(pid int) (io procfs.ProcIO, err error) {
	proc, err := procfs.NewProc(pid)
	if err == nil {
		io, err = proc.IO()
	}
	if gone(err) {
		err = nil
	}
	return io, err
}

// gone reports whether a process ended between being listed and being read.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// remember adds memory to a sample, unless reading it would take more than a
// hundredth of a core. Memory that several processes share, such as Postgres'
// buffers, counts once, because proportional set sizes are summed.
func (t *tracker) remember(found map[int]procfs.ProcStat, sample *Sample) error {
	begin := time.Now()
	if begin.Before(t.next) {
		return nil
	}
	var bytes int64
	for pid, stat := range found {
		if len(found) == 1 {
			bytes = int64(stat.ResidentMemory())
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
