package memlimit

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// Start starts a command inside the group, before the command uses any memory.
// In version 1 it inherits the group of the thread that starts it.
func (g *Group) Start(cmd *exec.Cmd) error {
	if g.version == v2 {
		dir, err := os.Open(g.dir)
		if err != nil {
			return err
		}
		defer dir.Close()
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = new(syscall.SysProcAttr)
		}
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
		return cmd.Start()
	}
	runtime.LockOSThread()
	join := func(dir string) error { return os.WriteFile(filepath.Join(dir, "tasks"), []byte("0"), 0) }
	err := join(g.dir)
	if err == nil {
		err = cmd.Start()
	}
	if back := join(g.home); back != nil {
		return errors.Join(err, back) // the thread stays locked, and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}
