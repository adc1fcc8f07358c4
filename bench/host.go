package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"

	"github.com/varvedb/varve/bench/probe"
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

// Fsync is a probe of a disk.
type Fsync = probe.Fsync

// ReadHost describes this machine with the disk of a directory, without a probe.
func ReadHost(dir string) Host {
	h := Host{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), MaxProcs: runtime.GOMAXPROCS(0)}
	readSystem(&h, dir)
	h.Machine = h.machine()
	return h
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
