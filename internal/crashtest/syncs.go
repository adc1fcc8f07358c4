package crashtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/varvedb/varve/store/driver"
)

// Syncs is the trial that counts, with strace, how often the processes of a store ask
// the system to sync a file while it commits: at least once a commit where commits are
// durable, and never where they are unsafe. A count says that the promise is kept by
// the call that keeps it, and what a commit costs on a disk whose syncs are dear.
type Syncs struct {
	Worker Command
}

// countedCommits is how many commits are counted at a time. They stay below the size of
// a log at which an engine does something about it.
const countedCommits = 20

// Name implements Trial.
func (*Syncs) Name() string { return "syncs" }

// Once says that one turn is enough.
func (*Syncs) Once() {}

// Skip implements Trial.
func (*Syncs) Skip(Cell) string {
	if _, err := exec.LookPath("strace"); err != nil {
		return "strace is not installed"
	}
	if out, err := exec.Command("strace", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		return "strace cannot trace here: " + strings.TrimSpace(string(out))
	}
	return ""
}

// Run implements Trial: it counts on each level of durability that the engine has.
func (t *Syncs) Run(ctx context.Context, c Cell, rng *rand.Rand, r *Report) error {
	for _, level := range levels(c.Engine) {
		n, err := CountSyncs(ctx, t.Worker, c, level, rng.Uint64())
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", level, err)
		}
		for range countedCommits {
			r.Fault(t, c, string(level))
		}
		for call, count := range n {
			r.Count(t, c, string(level)+" "+call, count)
		}
		switch total := n.Total(); {
		case level == driver.Durable && total < countedCommits:
			r.Violate(t, c, "%d syncs in %d durable commits", total, countedCommits)
		case level == driver.Unsafe && total > 0:
			r.Violate(t, c, "%d syncs in %d unsafe commits", total, countedCommits)
		}
	}
	return nil
}

// SyncCount is how often each system call that syncs was made.
type SyncCount map[string]int

// Total returns the number of calls.
func (n SyncCount) Total() (total int) {
	for _, count := range n {
		total += count
	}
	return total
}

// CountSyncs makes a new store in the cell's directory and returns the syncs of
// countedCommits small commits, one after the other. What is put off stays put off.
func CountSyncs(ctx context.Context, worker Command, c Cell, level driver.Durability, seed uint64) (SyncCount, error) {
	dir, err := os.MkdirTemp(c.Dir, "syncs-")
	if err != nil {
		return nil, err
	}
	c.Dir = dir
	traced := filepath.Join(dir, "trace")
	params := []string{"durability", string(level), "memory", smallMemory, "backlog", "100000"}
	if d, _ := driver.Lookup(c.Engine); d.Capabilities.WALCheckpoint {
		// The checkpointer syncs beside the commits, and makes room in the log ahead.
		params = append(params, "checkpoint", string(driver.Manual))
	}
	command := func(ctx context.Context, config string) *exec.Cmd {
		cmd := worker(ctx, config)
		return straced(ctx, cmd, traced)
	}
	end, err := runWorker(ctx, command, WorkerConfig{
		URL:    c.URL("store", params...),
		Layout: c.Layout, Journal: filepath.Join(dir, "journal"), Seed: seed, Syncs: countedCommits,
	}, nil)
	if err != nil {
		return nil, err
	}
	if end.code != exitDone {
		return nil, fmt.Errorf("worker ended with status %d: %s%s", end.code, end.said, tail(end.stderr))
	}
	text, err := os.ReadFile(traced)
	if err != nil {
		return nil, err
	}
	return parseTrace(text)
}

// straced returns a command that runs another one under strace.
func straced(ctx context.Context, cmd *exec.Cmd, out string) *exec.Cmd {
	args := []string{"-f", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range,msync,sync,syncfs,newfstatat", "-o", out, "--", cmd.Path}
	traced := exec.CommandContext(ctx, "strace", append(args, cmd.Args[1:]...)...)
	traced.Env, traced.Dir = cmd.Env, cmd.Dir
	return traced
}

// syncCall is the beginning of a call in a line of strace: the rest of one that was
// interrupted comes in a line of its own.
var syncCall = regexp.MustCompile(`^\d+ +(fsync|fdatasync|sync_file_range|msync|sync|syncfs)\(`)

// parseTrace counts the calls between the marks.
func parseTrace(text []byte) (SyncCount, error) {
	_, rest, begun := bytes.Cut(text, []byte(syncMark+"begin"))
	rest, _, ended := bytes.Cut(rest, []byte(syncMark+"end"))
	if !begun || !ended {
		return nil, errors.New("the trace has no marks: the worker was not traced to its end")
	}
	n := SyncCount{}
	for line := range bytes.Lines(rest) {
		if m := syncCall.FindSubmatch(line); m != nil {
			n[string(m[1])]++
		}
	}
	return n, nil
}
