package pace

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm wakes a goroutine in time, whether the process is idle or busy.
//
// When nothing else runs, the runtime waits for the next timer by its poller,
// which counts in milliseconds. But a file that becomes readable ends that wait
// at once, so the kernel's timer is a file here. When goroutines keep all
// processors busy, the runtime looks at files only now and then, but at timers
// whenever it chooses a goroutine. So reads of the file have a deadline too, and
// the first of the two wakes the goroutine.
//
// A goroutine that spins or sleeps in the kernel for the last part is worse. It
// must get a processor of the runtime back, behind all goroutines that are
// ready. Beside ten readers of SQLite it came up to 35 ms late, which was
// counted as the latency of commits.
type alarm struct {
	fd   int
	file *os.File // of fd
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return &alarm{fd: fd, file: os.NewFile(uintptr(fd), "alarm")}, nil
}

// nap sleeps for d, or less.
func (a *alarm) nap(d time.Duration) {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if unix.TimerfdSettime(a.fd, 0, &at, nil) != nil || a.file.SetReadDeadline(time.Now().Add(d)) != nil {
		time.Sleep(d)
		return
	}
	var expirations [8]byte
	_, _ = a.file.Read(expirations[:]) // an error is that of the deadline
}

func (a *alarm) close() { _ = a.file.Close() }
