// Package probe looks at processes, disks and the page cache while a workload
// runs. A Sampler takes what a timeline lacks: memory, CPU and disk traffic of
// the engine's processes, sizes and checkpoints from the engine's statistics,
// and how much of the database's files is in the page cache. Residency, Fill
// and Evict look at the page cache and change it, for cold and warm runs.
//
// It reads /proc and asks the kernel as Linux has it. Elsewhere these functions
// return ErrUnsupported, and a sampler tells only what the engine tells.
package probe

import "errors"

// ErrUnsupported says that this system has no such thing to look at.
var ErrUnsupported = errors.New("probe: not supported on this system")
