package cli

import "syscall"

// ofItsOwn is a separate process group for a child. The kernel ends the child
// when the thread that started it ends.
func ofItsOwn() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
