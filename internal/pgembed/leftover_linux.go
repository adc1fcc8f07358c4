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

// pidFile is the description of a running server in its data directory.
const pidFile = "postmaster.pid"

// readPIDFile reads the file as far as it has been written: the number of the
// process, zero when there is no such file, and whether it accepts connections.
func readPIDFile(dataDir string) (pid int, ready bool) {
	text, _ := os.ReadFile(filepath.Join(dataDir, pidFile)) // one that cannot be read tells nothing
	lines := strings.Split(string(text), "\n")
	pid, _ = strconv.Atoi(lines[0])
	// Line 8 is the status, padded with blanks.
	return pid, len(lines) >= 8 && strings.TrimSpace(lines[7]) == "ready"
}

// clearLeftovers makes way for a new server on a data directory whose lock this
// process holds. A server of ours that still runs there has lost its parent and
// is shut down; a server that another program started is ErrLocked. A lock file
// that names an unrelated process, which has the number of a dead server, is
// removed, because the server would refuse to start for it.
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

// endLeftover shuts a server down that is not our child, and waits for the end
// of all its processes. When the main process has gone the others end by
// themselves once their statement has; SIGINT cancels it.
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
// package started: the cluster's name is on the command line of the main
// process and in the title of the others. A process that has ended meanwhile
// counts, too.
func isOurs(pid int) bool {
	line, err := os.ReadFile(procFile(pid, "cmdline"))
	if err != nil || len(line) == 0 {
		return true
	}
	return strings.Contains(string(line), "\x00cluster_name="+ours+"\x00") ||
		strings.HasPrefix(string(line), "postgres: "+ours+": ")
}
