package cli

import "syscall"

// ownGroup starts a child in a separate process group, and makes the kernel
// kill it when the thread that started it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
