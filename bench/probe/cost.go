package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"time"

	"github.com/prometheus/procfs"

	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/store/driver"
)

// Cost has the resources that a phase used, from the counters of this process
// and of the engine's processes with all their descendants. On a slower or
// busier host a phase takes longer, but needs the same resources.
type Cost struct {
	CPU     time.Duration // user and system time of all threads
	Written int64         // bytes that were written to files
	Read    int64         // bytes fetched from storage, including read-ahead
	Syncs   *int64        // calls of fsync, fdatasync, msync and sync_file_range; nil where the kernel may not be asked
}

// Each returns the cost per operation.
func (c Cost) Each(operations int64) []latency.Metric {
	each := func(total float64, unit string) latency.Metric {
		return latency.Metric{Value: total / float64(operations), Unit: unit}
	}
	list := []latency.Metric{each(float64(c.CPU), "cpu-ns/op"),
		each(float64(c.Written), "write-B/op"), each(float64(c.Read), "read-B/op")}
	if c.Syncs != nil {
		list = append(list, each(float64(*c.Syncs), "syncs/op"))
	}
	return list
}

// Meter counts from its start.
type Meter struct {
	pids  []int
	begun Cost
	own   time.Duration // processor time of this process that is left out
	syncs *syncCounter
}

// NewMeter starts to count this process and the engine's. It fails with
// ErrUnsupported if the system has no such counters. The caller closes it.
func NewMeter(ctx context.Context, engine driver.Engine) (*Meter, error) {
	stats, err := engine.Stats(ctx)
	if err != nil {
		return nil, err
	}
	return newMeter(stats.EnginePIDs)
}

func newMeter(engine []int) (*Meter, error) {
	m := &Meter{pids: engine}
	found, err := m.processes()
	if err != nil {
		return nil, err
	}
	m.syncs = countSyncs(found) // first, because opening the counters costs processor time
	m.begun, err = m.used(found)
	m.own = ownCPU()
	return m, err
}

// Cost returns the resources used since the start.
func (m *Meter) Cost() (Cost, error) {
	own := ownCPU() - m.own // before reading the counters, which costs processor time
	found, err := m.processes()
	if err != nil {
		return Cost{}, err
	}
	now, err := m.used(found)
	if err != nil {
		return Cost{}, err
	}
	// A counter can fall when a process has ended and its parent has not waited
	// for it.
	c := Cost{
		CPU:     own + max(now.CPU-m.begun.CPU, 0),
		Written: max(now.Written-m.begun.Written, 0),
		Read:    max(now.Read-m.begun.Read, 0),
	}
	if n, ok := m.syncs.count(); ok {
		c.Syncs = &n
	}
	return c, nil
}

// Apart runs work that does not count, between two operations, such as making
// the next one. Only this process's processor time during f is left out,
// because reading the counters of a server's processes costs more than most
// operations. So f must not use the engine. A nil meter just calls f.
func (m *Meter) Apart(f func() error) error {
	if m == nil {
		return f()
	}
	before := ownCPU()
	err := f()
	m.own += ownCPU() - before
	return err
}

// Close releases the kernel's counters.
func (m *Meter) Close() { m.syncs.close() }

// processes returns this process and the engine's, with their descendants.
func (m *Meter) processes() (map[int]procfs.ProcStat, error) {
	found, err := find(nil)
	if err == nil && len(m.pids) > 0 {
		var engine map[int]procfs.ProcStat
		engine, err = find(m.pids)
		maps.Copy(found, engine)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrUnsupported
	}
	return found, err
}

// ticks is the unit of processor time in /proc/<pid>/stat.
const ticks = time.Second / 100

// used sums the counters of processes. It leaves out the processor time of this
// process, which ownCPU measures exactly. A process's time includes its ended
// children that it has waited for. Children of this process belong to no
// engine. Nothing counts twice, because a living child has not been added to
// its parent.
//
// Bytes written are wchar of /proc/<pid>/io, the bytes given to write(2).
// write_bytes is not used because it counts a whole large folio of the page
// cache when one byte of it changes: 17 to 36 % more for the same commits. If
// the engine has processes, this process is left out, because it writes to
// their sockets.
func (m *Meter) used(found map[int]procfs.ProcStat) (sum Cost, err error) {
	for pid, stat := range found {
		own := pid == os.Getpid()
		if !own {
			sum.CPU += time.Duration(stat.UTime+stat.STime) * ticks
		}
		sum.CPU += time.Duration(stat.CUTime+stat.CSTime) * ticks
		io, err := counters(pid)
		if err != nil {
			return sum, fmt.Errorf("probe: counters of process %d: %w", pid, err)
		}
		sum.Read += int64(io.ReadBytes)
		if !own || len(m.pids) == 0 {
			sum.Written += int64(io.WChar)
		}
	}
	return sum, nil
}
