// Package memlimit gives a process and its children a memory budget that the
// kernel enforces: a control group with a limit, which includes the page cache.
// It works on Linux; elsewhere, and where no group may be created, it returns
// the reason.
package memlimit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// Cache returns the part of a budget that an engine gets for its caches: a
// half. The other half is for everything else: the program and its
// measurements, the engine's other memory, and the page cache.
func Cache(budget int64) int64 { return budget / 2 }

// Group is a control group for processes that Start starts.
type Group struct {
	*version
	dir  string
	home string // the group of this process
}

// version has the names of a cgroup version's files.
type version struct{ name, limit, swap, events string }

var (
	v1 = &version{"cgroup v1", "memory.limit_in_bytes", "memory.swappiness", "memory.oom_control"}
	v2 = &version{"cgroup v2", "memory.max", "memory.swap.max", "memory.events"}
)

// Variable is an environment variable that tells a process why it was started
// without a limit.
const Variable = "VARVE_MEMORY_UNLIMITED"

// None is a limit above any memory, because version 1 cannot express "no
// limit".
const None = math.MaxInt64 >> 1

const (
	prefix    = "varve-"        // of groups' names; after it comes the process that made one
	writeback = time.Minute     // of a process's dirty pages
	patience  = 5 * time.Second // wait for ended processes to leave a group
)

// own returns the group of this process, and where its hierarchy is mounted.
func own() (*Group, string, error) {
	self, err := procfs.Self()
	if err != nil {
		return nil, "", err
	}
	groups, noGroups := self.Cgroups()
	mounts, noMounts := procfs.GetMounts()
	if err := errors.Join(noGroups, noMounts); err != nil {
		return nil, "", err
	}
	for _, m := range mounts {
		for _, at := range groups {
			dir := filepath.Join(m.MountPoint, strings.TrimPrefix(at.Path, m.Root))
			_, v1Mount := m.SuperOptions["memory"]
			switch {
			case m.FSType == "cgroup" && v1Mount && slices.Contains(at.Controllers, "memory"):
				return &Group{v1, dir, dir}, m.MountPoint, nil
			case m.FSType == "cgroup2" && at.HierarchyID == 0 && handsDown(dir, "cgroup.controllers"):
				return &Group{v2, dir, dir}, m.MountPoint, nil
			}
		}
	}
	return nil, "", errNoController
}

var errNoController = errors.New("the kernel's memory controller is not mounted")

func handsDown(dir, file string) bool {
	text, _ := os.ReadFile(filepath.Join(dir, file)) // none has none
	return slices.Contains(strings.Fields(string(text)), "memory")
}

// New creates a group with a limit in bytes, which must be closed. It fails
// where that is not permitted. In version 1 the group is a child of this
// process's group. In version 2 a group with processes cannot have children, so
// the parent is the nearest ancestor that this process may write to.
func New(limit int64) (*Group, error) {
	g, mount, err := own()
	if err != nil {
		return nil, err
	}
	parent := g.dir
	for g.version == v2 && parent != mount && !handsDown(parent, "cgroup.subtree_control") {
		parent = filepath.Dir(parent)
	}
	sweep(parent)
	if g.dir, err = os.MkdirTemp(parent, fmt.Sprintf("%s%d-", prefix, os.Getpid())); err != nil {
		return nil, fmt.Errorf("%w; try systemd-run --user --scope", err)
	}
	if err = g.write(g.swap, 0); errors.Is(err, os.ErrNotExist) { // there is no swap
		err = nil
	}
	if err = errors.Join(err, g.write(g.limit, limit)); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// sweep removes the groups of killed processes.
func sweep(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, prefix+"*")) // the pattern is good
	for _, dir := range left {
		pid, _, _ := strings.Cut(filepath.Base(dir)[len(prefix):], "-")
		if _, err := os.Stat("/proc/" + pid); errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(dir) // one with processes stays
		}
	}
}

func (g *Group) write(file string, value int64) error {
	return os.WriteFile(filepath.Join(g.dir, file), []byte(strconv.FormatInt(value, 10)), 0)
}

// Killed returns how many processes of the group the kernel killed for lack of
// memory.
func (g *Group) Killed() (n int64) {
	text, _ := os.ReadFile(filepath.Join(g.dir, g.events))
	_, rest, _ := strings.Cut(string(text), "oom_kill ")
	_, _ = fmt.Sscan(rest, &n) // 0 where the kernel does not tell
	return n
}

// Close removes the group. Its processes must have ended.
func (g *Group) Close() error {
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err := os.Remove(g.dir)
		if !errors.Is(err, syscall.EBUSY) || time.Since(begun) > patience {
			return err
		}
	}
}

// Own returns the effective memory limit of this process in bytes, read back
// from the kernel, and its source: cgroup v1 or v2. Without a limit it returns
// the reason.
func Own() (limit int64, how string, err error) {
	g, mount, err := own()
	if err != nil {
		return 0, "", err
	}
	limit = None
	for dir := g.dir; strings.HasPrefix(dir, mount); dir = filepath.Dir(dir) {
		text, _ := os.ReadFile(filepath.Join(dir, g.limit))
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			limit = min(limit, n)
		}
	}
	if limit == None {
		return 0, "", errors.New(cmp.Or(os.Getenv(Variable), "it was started without one"))
	}
	return limit, g.name, nil
}

// inherited returns the group of a process that was started in a group of New;
// nil for other processes, whose group is not ours.
func inherited() *Group {
	if g, _, err := own(); err == nil && strings.HasPrefix(filepath.Base(g.dir), prefix) {
		return g
	}
	return nil
}

// Resize changes the limit of this process, if it was started with one. To get
// below the memory in use it waits until the page cache is written back.
func Resize(limit int64) error {
	g := inherited()
	if g == nil {
		return nil
	}
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := g.write(g.limit, limit)
		if !errors.Is(err, syscall.EBUSY) || time.Since(begun) > writeback {
			return err
		}
	}
}

// Watch starts to watch this process and its children. The returned function
// gives the number of processes killed since for lack of memory; 0 for a
// process that was started without a limit.
func Watch() (killed func() int64) {
	g := inherited()
	if g == nil {
		return func() int64 { return 0 }
	}
	before := g.Killed()
	return func() int64 { return g.Killed() - before }
}
