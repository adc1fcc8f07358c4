package pace

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps in the kernel, which is precise to about 100 µs, while the
// runtime's timers are precise to a millisecond. It blocks a thread and cannot
// be interrupted: keep it short. A signal, such as the runtime's for
// preemption, ends it early, so check the clock afterwards.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil)
}
