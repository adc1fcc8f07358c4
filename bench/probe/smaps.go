//go:build !windows

package probe

import "github.com/prometheus/procfs"

// proportional returns the proportional set size of a process, in bytes.
func proportional(p procfs.Proc) (int64, error) {
	rollup, err := p.ProcSMapsRollup()
	return int64(rollup.Pss), err
}
