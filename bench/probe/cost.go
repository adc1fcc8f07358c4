package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/prometheus/procfs"
)

// Cost is what a phase took of the machine: the counters of this process and
// of the engine's processes, with all that descend from them. A slower or
// busier host takes longer for the same phase, but not more of these.
type Cost struct {
	CPU     time.Duration // user and system time of all threads
	Written int64         // bytes that were handed to the file system's storage, /proc/<pid>/io write_bytes
	Read    int64         // bytes that were fetched from storage, read-ahead among them
	Syncs   *int64        // calls of fsync, fdatasync, msync and sync_file_range; nil where the kernel may not be asked
}

// Meter counts from its start.
type Meter struct {
	pids  []int
	begun Cost
	syncs *syncCounter
}

// NewMeter starts to count this process and the engine's, which
// driver.Stats.EnginePIDs names. It fails with ErrUnsupported where the system
// has no such counters. Close ends it.
func NewMeter(engine []int) (*Meter, error) {
	m := &Meter{pids: engine}
	found, err := m.processes()
	if err != nil {
		return nil, err
	}
	m.syncs = countSyncs(found) // first: opening it costs processor time
	m.begun, err = used(found)
	return m, err
}

// Cost returns what was used since the start.
func (m *Meter) Cost() (Cost, error) {
	found, err := m.processes()
	if err != nil {
		return Cost{}, err
	}
	now, err := used(found)
	if err != nil {
		return Cost{}, err
	}
	// A counter falls where a process has ended that its parent has not waited for.
	c := Cost{
		CPU:     max(now.CPU-m.begun.CPU, 0),
		Written: max(now.Written-m.begun.Written, 0),
		Read:    max(now.Read-m.begun.Read, 0),
	}
	if n, ok := m.syncs.count(); ok {
		c.Syncs = &n
	}
	return c, nil
}

// Close gives back the kernel's counters.
func (m *Meter) Close() { m.syncs.close() }

// processes are this one and the engine's with their descendants.
func (m *Meter) processes() (map[int]procfs.ProcStat, error) {
	found, err := find(nil)
	if err == nil && len(m.pids) > 0 {
		var engine map[int]procfs.ProcStat
		engine, err = find(m.pids)
		for pid, stat := range engine {
			found[pid] = stat
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrUnsupported
	}
	return found, err
}

// ticks is the unit of processor time in /proc/<pid>/stat.
const ticks = time.Second / 100

// used sums the counters of processes. That of a process has in it the
// children that have ended and that it has waited for; those of this process
// are no engine's, and none of them is counted twice, since a child that lives
// has not been added to its parent.
func used(found map[int]procfs.ProcStat) (sum Cost, err error) {
	for pid, stat := range found {
		if own, exact := ownCPU(); exact && pid == os.Getpid() {
			sum.CPU += own
		} else {
			sum.CPU += time.Duration(stat.UTime+stat.STime) * ticks
		}
		sum.CPU += time.Duration(stat.CUTime+stat.CSTime) * ticks
		proc, err := procfs.NewProc(pid)
		if err == nil {
			var io procfs.ProcIO
			if io, err = proc.IO(); err == nil {
				sum.Written += int64(io.WriteBytes) - io.CancelledWriteBytes
				sum.Read += int64(io.ReadBytes)
			}
		}
		if err != nil && !gone(err) {
			return sum, fmt.Errorf("probe: counters of process %d: %w", pid, err)
		}
	}
	return sum, nil
}
