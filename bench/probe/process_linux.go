package probe

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of times in /proc, the same on all common architectures.
const tick = 10 * time.Millisecond

// uptime returns the time since the system began, by the clock of processes'
// start times.
func uptime() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, fmt.Errorf("probe: clock: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}

// processes returns those of the given processes that live, with all that
// descend from them. For none it is this process alone: the engine is a part of
// it, and what it runs besides is not.
func processes(pids []int) (map[int]process, error) {
	if len(pids) == 0 {
		me := os.Getpid()
		p, err := readProcess(me, false)
		return map[int]process{me: p}, err
	}
	all, err := everyProcess()
	if err != nil {
		return nil, err
	}
	found := make(map[int]process)
	for _, pid := range pids {
		if p, lives := all[pid]; lives {
			found[pid] = p
		}
	}
	for more := true; more; {
		more = false
		for pid, p := range all {
			_, have := found[pid]
			if _, child := found[p.parent]; child && !have {
				found[pid], more = p, true
			}
		}
	}
	for pid, p := range found {
		p.used.read, p.used.written = readDisk(pid)
		found[pid] = p
	}
	return found, nil
}

// everyProcess returns all of the system but for their disk traffic.
func everyProcess() (map[int]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	all := make(map[int]process)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, err := readStat(pid, true)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all[pid] = p
	}
	return all, nil
}

func readProcess(pid int, children bool) (process, error) {
	p, err := readStat(pid, children)
	p.used.read, p.used.written = readDisk(pid)
	return p, err
}

// gone tells that a process ended between being listed and being read.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// readStat reads /proc/pid/stat, see proc_pid_stat(5).
func readStat(pid int, children bool) (process, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, fmt.Errorf("probe: %w", err)
	}
	p, ok := parseStat(text, children)
	if !ok {
		return process{}, fmt.Errorf("probe: process %d: cannot read %q", pid, text)
	}
	return p, nil
}

// parseStat reads the fields behind the command, which may have blanks and
// parentheses itself.
func parseStat(text []byte, children bool) (p process, ok bool) {
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const (
		state = 3 // number of the first field there
		ppid  = 4 - state
		utime = 14 - state
		begun = 22 - state
	)
	if len(fields) <= begun {
		return p, false
	}
	number := func(i int) int64 {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		ok = ok && err == nil
		return n
	}
	ok = true
	p.parent = int(number(ppid))
	p.started = time.Duration(number(begun)) * tick
	ticks := number(utime) + number(utime+1)
	if children {
		ticks += number(utime+2) + number(utime+3)
	}
	p.used.cpu = time.Duration(ticks) * tick
	return p, ok
}

// readDisk reads /proc/pid/io, which only the owner of a process may; -1
// otherwise.
func readDisk(pid int) (read, written int64) {
	read, written = -1, -1
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return read, written
	}
	for line := range bytes.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), ": ")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
		case name == "read_bytes":
			read = n
		case name == "write_bytes":
			written = n
		}
	}
	if read < 0 || written < 0 {
		return -1, -1
	}
	return read, written
}

// memory returns the bytes that processes hold in memory. What several of them
// share, such as Postgres' buffers, counts once: it is the sum of their
// proportional sets (PSS), or where these may not be read, of what each has to
// itself and the largest shared part.
func memory(pids []int) (int64, error) {
	var proportional, private, shared int64
	exact := len(pids) > 1
	for _, pid := range pids {
		resident, common, err := readResident(pid)
		if gone(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		private += resident - common
		shared = max(shared, common)
		if exact {
			pss, known := readProportional(pid)
			exact = known
			proportional += pss
		}
	}
	if exact {
		return proportional, nil
	}
	return private + shared, nil
}

// readResident reads the second and third field of /proc/pid/statm.
func readResident(pid int) (resident, shared int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("probe: %w", err)
	}
	var size int64
	if _, err := fmt.Sscan(string(text), &size, &resident, &shared); err != nil {
		return 0, 0, fmt.Errorf("probe: process %d: cannot read %q: %w", pid, text, err)
	}
	page := int64(os.Getpagesize())
	return resident * page, shared * page, nil
}

// readProportional reads the sum of /proc/pid/smaps_rollup. A process that has
// just ended has none.
func readProportional(pid int) (bytes int64, known bool) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, gone(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "Pss:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			return kilobytes << 10, err == nil
		}
	}
	return 0, gone(lines.Err())
}
