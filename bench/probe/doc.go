// Package probe looks at processes, disks and the page cache while a workload
// runs. A Sampler takes what a timeline lacks: what the engine's processes hold in memory and read
// from the disk, and its log and checkpoints from its statistics. Residency, Fill
// and Evict look at the page cache and change it, for cold and warm runs.
//
// It reads /proc and asks the kernel as Linux has it. Elsewhere these functions
// return ErrUnsupported, and a sampler tells only what the engine tells.
package probe

import "errors"

// ErrUnsupported says that this system has no such thing to look at.
var ErrUnsupported = errors.New("probe: not supported on this system")
