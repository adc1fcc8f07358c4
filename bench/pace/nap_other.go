//go:build !linux

package pace

import "time"

// nap does nothing where only the runtime's timers are at hand: the caller
// spins.
func nap(time.Duration) bool { return false }
