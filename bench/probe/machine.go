package probe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/procfs"

	"github.com/varvedb/varve/bench/latency"
)

// Sync measures a disk by n appends of 4 KiB to a temporary file in a directory, each followed by fsync.
func Sync(dir string, n int) (took *latency.Recorder, err error) {
	file, err := os.CreateTemp(dir, "fsync-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	page := make([]byte, 4<<10)
	took = latency.NewRecorder()
	for range n {
		if _, err := file.Write(page); err != nil {
			return nil, err
		}
		start := time.Now()
		err := file.Sync()
		if took.Record(time.Since(start)); err != nil {
			return nil, err
		}
	}
	return took, nil
}

// Machine is the result of a short test of this machine, taken while no
// measurement runs.
type Machine struct {
	Fsync *latency.Recorder
	Copy  float64       // bytes a second, from memory to memory
	Work  time.Duration // that a fixed program takes

	// The share of all cores that other programs used while this one rested,
	// and the share that the hypervisor gave to other machines; nil where the
	// system does not report it.
	Others, Stolen *float64
}

// The parts of the test: 128 syncs, so that a slow one in a hundred shows;
// copies larger than any cache; and a rest that is long compared with the
// kernel's counting interval of 10 ms.
const (
	syncs  = 128
	copied = 64 << 20
	rounds = 3
	rest   = 300 * time.Millisecond
)

// Look tests this machine, with the disk of a directory.
func Look(ctx context.Context, dir string) (m Machine, err error) {
	if m.Fsync, err = Sync(dir, syncs); err != nil {
		return m, fmt.Errorf("probe: %w", err)
	}
	m.Copy, m.Work = copying(), middle(func() { work() })
	before := system()
	select {
	case <-ctx.Done():
		return m, ctx.Err()
	case <-time.After(rest):
	}
	m.Others, m.Stolen = shares(before, system())
	return m, nil
}

// copying returns the median of some copies, in bytes a second.
func copying() float64 {
	defer debug.FreeOSMemory() // frees the buffers, because this process continues while others are measured
	from, to := make([]byte, copied), make([]byte, copied)
	copy(to, from) // so that the kernel allocates the pages
	return copied / middle(func() { copy(from, to) }).Seconds()
}

func middle(f func()) time.Duration {
	took := make([]time.Duration, rounds)
	for i := range took {
		start := time.Now()
		f()
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[rounds/2]
}

// workSize is how many numbers the fixed program generates and sorts: 2 MB,
// some 20 ms.
const workSize = 1 << 18

// work is the fixed program: it generates numbers from a seed, sorts them, and
// returns a sum that depends on their order.
func work() (sum uint64) {
	random := rand.New(rand.NewPCG(1, 2))
	numbers := make([]uint64, workSize)
	for i := range numbers {
		numbers[i] = random.Uint64()
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		sum = sum*31 + n
	}
	return sum
}

// system returns the counters of all cores since boot; nil where the system
// does not report them.
func system() *procfs.CPUStat {
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if all, err := fs.Stat(); err == nil {
			return &all.CPUTotal
		}
	}
	return nil
}

// shares returns the share of all cores that was in use, and the share that was
// stolen.
func shares(a, b *procfs.CPUStat) (used, stolen *float64) {
	if a == nil || b == nil {
		return nil, nil
	}
	idle, gone := b.Idle-a.Idle+b.Iowait-a.Iowait, b.Steal-a.Steal
	busy := b.User - a.User + b.Nice - a.Nice + b.System - a.System + b.IRQ - a.IRQ + b.SoftIRQ - a.SoftIRQ
	total := max(idle+gone+busy, 1e-9)
	return new(busy / total), new(gone / total)
}

// Metrics returns the known figures.
func (m *Machine) Metrics() []latency.Metric {
	list := []latency.Metric{
		{Value: float64(m.Fsync.Count()), Unit: "fsyncs"}, latency.Milliseconds(m.Fsync.Quantile(50), "fsync-p50-ms"),
		latency.Milliseconds(m.Fsync.Quantile(99), "fsync-p99-ms"), latency.Milliseconds(m.Fsync.Max(), "fsync-max-ms"),
		{Value: m.Copy / 1e6, Unit: "copy-MB/s"}, latency.Milliseconds(m.Work, "work-ms"),
	}
	for _, s := range m.known() {
		list = append(list, latency.Metric{Value: *s.of, Unit: s.unit})
	}
	return list
}

// usage is a share of the cores that others use.
type usage struct {
	of         *float64
	unit, what string
}

// known returns the shares that the system reports.
func (m *Machine) known() []usage {
	list := []usage{{m.Others, "share-others", "other programs use"}, {m.Stolen, "share-stolen", "the hypervisor gives to others"}}
	return slices.DeleteFunc(list, func(s usage) bool { return s.of == nil })
}

// tolerated is the share of the cores that others may use.
const tolerated = 0.1

// Off returns why measurements on the machine cannot be relied on, or "". One
// look cannot show that a machine is slower than at other times; the figures of
// several looks do.
func (m *Machine) Off() (why string) {
	for _, s := range m.known() {
		if *s.of > tolerated {
			return fmt.Sprintf("%s %.0f %% of the cores", s.what, 100**s.of)
		}
	}
	return ""
}
