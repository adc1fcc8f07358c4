package pace

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm makes timers precise. When nothing else runs, the runtime waits for the
// next timer by its poller, which counts in milliseconds. But a file that
// becomes readable ends that wait at once, and then the runtime looks at its
// timers. So the kernel's timer is a file here, and a goroutine reads it.
//
// The goroutine that waits has a timer of the runtime, because when goroutines
// keep all processors busy nothing wakes it sooner. One that spins and yields,
// sleeps in the kernel, or reads a file gets a processor of the runtime behind
// all others that are ready. Beside ten readers of SQLite a goroutine that
// yielded came up to 35 ms late, and that was counted as latency of commits.
type alarm struct {
	fd   int
	file *os.File // of fd
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	a := &alarm{fd: fd, file: os.NewFile(uintptr(fd), "alarm")}
	go func() {
		var expirations [8]byte
		for err := error(nil); err == nil; {
			_, err = a.file.Read(expirations[:])
		}
	}()
	return a, nil
}

// nap sleeps for d.
func (a *alarm) nap(d time.Duration) {
	const behind = 5 * time.Microsecond // so that the timer is due when the file wakes the runtime
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d + behind))}
	_ = unix.TimerfdSettime(a.fd, 0, &at, nil) // if it fails, the timer alone wakes
	time.Sleep(d)
}

func (a *alarm) close() { _ = a.file.Close() }
