package probe

import "github.com/prometheus/procfs"

// proportional is not to be had here, and is not asked: no process is found.
func proportional(procfs.Proc) (int64, error) { return 0, nil }
