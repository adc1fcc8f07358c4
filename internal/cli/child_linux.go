package cli

import "syscall"

// ownGroup is a separate process group for a child. The kernel ends the child
// when the thread that started it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
