package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
)

// Host is the machine and the disk of a measurement. What cannot be found out
// is empty or zero.
type Host struct {
	Machine     string `json:"machine"` // tells this machine from others
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
	probe, err := ProbeFsync(dir, 64)
	h := Host{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), MaxProcs: runtime.GOMAXPROCS(0), Fsync: probe}
	readSystem(&h, dir)
	h.Machine = h.machine()
	return h, err
}

// machine is a hash of what another machine does not have, or what makes another
// one of this: its name, and what it measures with.
func (h *Host) machine() string {
	id, err := os.ReadFile("/etc/machine-id")
	name, _ := os.Hostname()
	if err == nil && len(id) > 0 {
		name = string(id)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", name, h.CPU, h.Cores))
	return hex.EncodeToString(sum[:6])
}

// ProbeFsync measures a disk by n appends to a temporary file in a directory.
func ProbeFsync(dir string, n int) (f Fsync, err error) {
	file, err := os.CreateTemp(dir, "fsync-*")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	page, res := make([]byte, 4<<10), NewResult()
	for range n {
		if _, err := file.Write(page); err != nil {
			return f, err
		}
		if err := res.Time(file.Sync); err != nil {
			return f, err
		}
	}
	return Fsync{Samples: n, Median: res.Latency.Quantile(50), Max: res.Latency.Max()}, nil
}
