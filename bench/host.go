package bench

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Host is the machine and the disk of a measurement. What cannot be found out
// is empty or zero.
type Host struct {
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	Kernel      string `json:"kernel"`
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	MaxProcs    int    `json:"gomaxprocs"`
	MemoryBytes uint64 `json:"memory_bytes"`
	Filesystem  string `json:"filesystem"` // type, of the data directory
	Fsync       Fsync  `json:"fsync"`
}

// Fsync is a probe of a disk: appends of 4 KiB, each followed by fsync.
type Fsync struct {
	Samples int           `json:"samples"`
	Median  time.Duration `json:"median_ns"`
	Max     time.Duration `json:"max_ns"`
}

// ReadHost describes this machine with the disk of a directory.
func ReadHost(dir string) (Host, error) {
	h := Host{
		OS: runtime.GOOS, Arch: runtime.GOARCH,
		Cores: runtime.NumCPU(), MaxProcs: runtime.GOMAXPROCS(0),
	}
	readSystem(&h, dir)
	var err error
	h.Fsync, err = ProbeFsync(dir, 64)
	return h, err
}

const probeBytes = 4 << 10

// ProbeFsync measures a disk by n appends to a temporary file in a directory.
func ProbeFsync(dir string, n int) (f Fsync, err error) {
	file, err := os.CreateTemp(dir, "fsync-*")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	page := make([]byte, probeBytes)
	took := make([]time.Duration, 0, n)
	for range n {
		if _, err := file.Write(page); err != nil {
			return f, err
		}
		start := time.Now()
		if err := file.Sync(); err != nil {
			return f, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	if n > 0 {
		f = Fsync{Samples: n, Median: took[n/2], Max: took[n-1]}
	}
	return f, nil
}

// Revision is the source that was measured.
type Revision struct {
	Go       string `json:"go"`
	Commit   string `json:"commit"`   // of Varve, or its version when it is a dependency
	Modified bool   `json:"modified"` // there were changes on top of it
}

// ReadRevision asks the build, and git when the build does not know, as in
// tests.
func ReadRevision(ctx context.Context) Revision {
	r := Revision{Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		r.fromBuild(info)
	}
	if r.Commit == "" {
		r.fromGit(ctx)
	}
	return r
}

const modulePath = "github.com/varvedb/varve"

func (r *Revision) fromBuild(info *debug.BuildInfo) {
	for _, dep := range info.Deps {
		if dep.Path == modulePath && dep.Replace == nil {
			r.Commit = dep.Version
		}
	}
	if info.Main.Path != modulePath {
		return
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Commit = s.Value
		case "vcs.modified":
			r.Modified = s.Value == "true"
		}
	}
}

// fromGit looks at the work tree of the working directory, if it is Varve's.
func (r *Revision) fromGit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	top, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return
	}
	mod, err := os.ReadFile(filepath.Join(top, "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module "+modulePath+"\n") {
		return
	}
	commit, err := git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return
	}
	status, err := git(ctx, "status", "--porcelain")
	r.Commit, r.Modified = commit, err != nil || status != ""
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	return strings.TrimSpace(string(out)), err
}
