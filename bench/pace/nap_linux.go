package pace

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps in the kernel, which is precise to about 100 µs, where the runtime's timers are to a millisecond.
// It blocks a thread and cannot be interrupted: keep it short. A signal ends it early, such as the runtime's
// for preemption, so look at the clock.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil)
}
