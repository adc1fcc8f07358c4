package pgembed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// pidFile is a file in the data directory that describes the running server.
const pidFile = "postmaster.pid"

// readPIDFile reads the file as far as it has been written: the process number,
// zero when there is no such file, and whether the server accepts connections.
func readPIDFile(dataDir string) (pid int, ready bool) {
	text, _ := os.ReadFile(filepath.Join(dataDir, pidFile)) // a file that cannot be read counts as none
	lines := strings.Split(string(text), "\n")
	pid, _ = strconv.Atoi(lines[0])
	// Line 8 is the status, padded with blanks.
	return pid, len(lines) >= 8 && strings.TrimSpace(lines[7]) == "ready"
}

// clearLeftovers prepares a data directory, whose lock this process holds, for
// a new server. A server of this package that still runs there has lost its
// parent and is shut down; a server of another program is ErrLocked. A pid file
// that names an unrelated process, which has reused the number of a dead
// server, is removed, because the new server would refuse to start.
func clearLeftovers(ctx context.Context, dataDir string) error {
	main, _ := readPIDFile(dataDir)
	found := workersIn(dataDir)
	for _, pid := range found {
		if !isOurs(pid) {
			return fmt.Errorf("process %d, a postgres that Varve did not start, is running on this data: %w",
				pid, driver.ErrLocked)
		}
	}
	if len(found) > 0 {
		return endLeftover(ctx, dataDir, main)
	}
	if main > 0 && syscall.Kill(main, 0) == nil {
		if err := os.Remove(filepath.Join(dataDir, pidFile)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// endLeftover shuts down a server that is not our child, and waits for all its
// processes. Workers end by themselves, once their statement ends, after the
// main process is gone; SIGINT cancels the statement.
func endLeftover(ctx context.Context, dataDir string, main int) error {
	gone := func() bool { return len(workersIn(dataDir)) == 0 || ctx.Err() != nil }
	for _, step := range []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{syscall.SIGINT, stopTimeout}, {syscall.SIGQUIT, quitGrace}} {
		targets := workersIn(dataDir)
		if slices.Contains(targets, main) {
			targets = []int{main}
		}
		for _, pid := range targets {
			signalHolder(pid, dataDir, step.sig)
		}
		if waitFor(step.wait, gone) {
			return ctx.Err()
		}
	}
	return fmt.Errorf("processes %v of an earlier server do not end: %w", workersIn(dataDir), driver.ErrLocked)
}

// isOurs reports whether a postgres process belongs to a server that this
// package started. The cluster's name is on the command line of the main
// process and in the titles of its workers. A process that has ended meanwhile
// counts too.
func isOurs(pid int) bool {
	line, err := os.ReadFile(procFile(pid, "cmdline"))
	if err != nil || len(line) == 0 {
		return true
	}
	return strings.Contains(string(line), "\x00cluster_name="+ours+"\x00") ||
		strings.HasPrefix(string(line), "postgres: "+ours+": ")
}
