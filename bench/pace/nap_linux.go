package pace

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps in the kernel, which is precise to about 100 µs, where the
// runtime's timers are to a millisecond. It blocks a thread and cannot be
// interrupted: keep it short. It tells whether it slept at all.
func nap(d time.Duration) bool {
	ts := unix.NsecToTimespec(int64(d))
	// A signal ends it early, such as the runtime's for preemption; the caller
	// looks at the clock anyhow.
	err := unix.Nanosleep(&ts, nil)
	return err == nil || errors.Is(err, unix.EINTR)
}
