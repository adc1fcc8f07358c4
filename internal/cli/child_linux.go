package cli

import "syscall"

// ofItsOwn is a process group of its own for a child that the kernel ends when the thread
// that started it does.
func ofItsOwn() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
