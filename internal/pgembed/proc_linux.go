package pgembed

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// workersIn returns the postgres processes whose working directory is the data
// directory. Every such process works there from its start, while the pid file
// may be wrong after a crash.
func workersIn(dataDir string) (pids []int) {
	dir, err := os.Stat(dataDir)
	if err != nil {
		return nil
	}
	found, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, path := range found {
		if pid, err := strconv.Atoi(filepath.Base(path)); err == nil && worksIn(pid, dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// worksIn reports whether pid is a postgres process whose working directory is
// dir.
func worksIn(pid int, dir os.FileInfo) bool {
	name, err := os.ReadFile(procFile(pid, "comm"))
	if err != nil || strings.TrimSpace(string(name)) != "postgres" {
		return false
	}
	cwd, err := os.Stat(procFile(pid, "cwd"))
	return err == nil && os.SameFile(cwd, dir)
}

// endHolders waits until no process of a server that has ended works in its
// data directory. They notice the end by themselves, so the wait is short; then
// they are killed.
func endHolders(dataDir string) error {
	gone := func() bool { return len(workersIn(dataDir)) == 0 }
	if waitFor(quitGrace, gone) {
		return nil
	}
	left := workersIn(dataDir)
	for _, pid := range left {
		signalHolder(pid, dataDir, syscall.SIGKILL)
	}
	if !waitFor(quitGrace, gone) {
		return fmt.Errorf("processes %v are still there", workersIn(dataDir))
	}
	return fmt.Errorf("processes %v outlived the server and were killed", left)
}

// signalHolder sends a signal to pid if it still works in the data directory.
// It opens a handle before the check, so that a process which has reused the
// number is not hit. A process that has ended needs no signal.
func signalHolder(pid int, dataDir string, sig syscall.Signal) {
	dir, err := os.Stat(dataDir)
	if err != nil {
		return
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	defer p.Release()
	if worksIn(pid, dir) {
		_ = p.Signal(sig)
	}
}

// waitFor polls a condition until it holds or the timeout has passed.
func waitFor(timeout time.Duration, cond func() bool) bool {
	for end := time.Now().Add(timeout); !cond(); time.Sleep(pollEvery) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}
