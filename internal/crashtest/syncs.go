package crashtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/varvedb/varve/store/driver"
)

// countedCommits is how many commits are counted. They are too few for the log
// to reach the size at which an engine acts on it. warmCommits run before them,
// so that pages and statements exist.
const (
	countedCommits = 20
	warmCommits    = 5
)

// syncMark is a path of no file. A lookup of it is a system call that marks a
// place in the trace and changes nothing.
const syncMark = "/varve-mark-"

// CannotTrace returns why system calls cannot be counted here, or "".
func CannotTrace() string {
	out, err := exec.Command("strace", "-o", os.DevNull, "true").CombinedOutput()
	if err != nil {
		return fmt.Sprintf("strace: %v %s", err, out)
	}
	return ""
}

// SyncCount counts calls by the name of the system call.
type SyncCount map[string]int

// Total returns the number of calls.
func (n SyncCount) Total() (total int) {
	for _, count := range n {
		total += count
	}
	return total
}

// CountSyncs makes a new store in the cell's directory and counts, with strace,
// the sync system calls of its processes during countedCommits commits in
// sequence. The count shows that a commit makes the call that its promise
// needs, and its cost on a disk with slow syncs. Deferred work is not run.
func CountSyncs(ctx context.Context, c Cell, level driver.Durability) (SyncCount, error) {
	traced := filepath.Join(c.Dir, "trace")
	params := []string{"durability", string(level), "memory", smallMemory, "backlog", "100000"}
	if d, _ := driver.Lookup(c.Engine); d.Capabilities.WALCheckpoint {
		// The background checkpointer would add its syncs, and the syncs for
		// growing the log.
		params = append(params, "checkpoint", string(driver.Manual))
	}
	config := workerConfig{URL: c.URL("store", params...), Layout: c.Layout, Seed: 1, CheckOnly: true}
	end, err := runWorker(ctx, config, nil) // makes the store, which takes long under a tracer
	if err == nil && end.code == exitDone {
		config.CheckOnly, config.Syncs = false, countedCommits
		end, err = runWorker(ctx, config, nil,
			strings.Fields("strace -f -qq -e trace=fsync,fdatasync,sync_file_range,msync,sync,syncfs,newfstatat -o "+traced+" --")...)
	}
	if err != nil {
		return nil, err
	}
	if end.code != exitDone {
		return nil, fmt.Errorf("worker ended with status %d: %s%s", end.code, end.message, tail(end.stderr))
	}
	text, err := os.ReadFile(traced)
	if err != nil {
		return nil, err
	}
	return parseTrace(text)
}

// commitMarked makes w.Syncs commits, one by one, between two marks.
func (w *worker) commitMarked(ctx context.Context, s subject) error {
	for i := range warmCommits + w.Syncs {
		if i == warmCommits {
			_, _ = os.Stat(syncMark + "begin")
		}
		if err := s.grow(ctx); err != nil {
			return err
		}
	}
	_, _ = os.Stat(syncMark + "end")
	return nil
}

// syncCall matches the beginning of a call in a line of strace. The second part
// of an interrupted call is in another line.
var syncCall = regexp.MustCompile(`(?m)^\d+ +(fsync|fdatasync|sync_file_range|msync|sync|syncfs)\(`)

// parseTrace counts the calls between the marks.
func parseTrace(text []byte) (SyncCount, error) {
	_, rest, begun := bytes.Cut(text, []byte(syncMark+"begin"))
	rest, _, ended := bytes.Cut(rest, []byte(syncMark+"end"))
	if !begun || !ended {
		return nil, errors.New("the trace has no marks: the worker was not traced to its end")
	}
	n := SyncCount{}
	for _, m := range syncCall.FindAllSubmatch(rest, -1) {
		n[string(m[1])]++
	}
	return n, nil
}
