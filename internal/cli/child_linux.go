package cli

import "syscall"

// ownGroup gives a child its own process group, and has the kernel end it when
// the thread that started it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
