package probe

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// ownCPU is the processor time of this process, in microseconds; /proc has only
// hundredths of a second.
func ownCPU() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // which fails for a wrong address only
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// syncCalls are the system calls that make data durable.
var syncCalls = []string{"fsync", "fdatasync", "msync", "sync_file_range"}

// syncCounter has one kernel counter (perf_event_open(2)) for each of these
// calls in each thread. Threads and processes that they start later inherit the
// counters.
type syncCounter struct{ counters []int }

// countSyncs starts to count the calls of all threads of some processes. It
// returns nil where that is not permitted: it needs root or a
// perf_event_paranoid of -1, and a mounted tracefs.
func countSyncs(found map[int]procfs.ProcStat) *syncCounter {
	c := new(syncCounter)
	for _, call := range syncCalls {
		id, err := tracepoint("sys_enter_" + call)
		if err != nil {
			c.close()
			return nil
		}
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: id, Bits: unix.PerfBitInherit}
		for pid := range found {
			tasks, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*"))
			if err != nil {
				continue
			}
			for _, task := range tasks {
				tid, _ := strconv.Atoi(filepath.Base(task))
				fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
				switch {
				case err == nil:
					c.counters = append(c.counters, fd)
				case err != unix.ESRCH: // else the thread has ended
					c.close()
					return nil
				}
			}
		}
	}
	return c
}

// tracepoint returns the number of a system call's tracepoint.
func tracepoint(name string) (uint64, error) {
	path := filepath.Join("events/syscalls", name, "id")
	text, err := os.ReadFile(filepath.Join("/sys/kernel/tracing", path))
	if err != nil {
		text, err = fromDetachedTracefs(path)
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

// fromDetachedTracefs reads a file of a tracefs that is not mounted anywhere,
// so that the machine's mounts do not change.
func fromDetachedTracefs(path string) ([]byte, error) {
	fs, err := unix.Fsopen("tracefs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fs) }()
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, err
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(mount) }()
	fd, err := unix.Openat(mount, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	return io.ReadAll(f)
}

// count returns the calls since the start; false if they are not counted.
func (c *syncCounter) count() (sum int64, ok bool) {
	if c == nil {
		return 0, false
	}
	var value [8]byte
	for _, fd := range c.counters {
		if n, err := unix.Read(fd, value[:]); err != nil || n != len(value) {
			return 0, false
		}
		sum += int64(binary.NativeEndian.Uint64(value[:]))
	}
	return sum, true
}

func (c *syncCounter) close() {
	if c == nil {
		return
	}
	for _, fd := range c.counters {
		_ = unix.Close(fd) // it was only read
	}
	c.counters = nil
}
