package pgembed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// quitGrace is how long an immediate shutdown may take before the server is
// killed.
const quitGrace = 10 * time.Second

// process is a child that the kernel ends when this process dies.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the child has been waited for
	err  error         // of Wait; set before done is closed
}

// launch starts cmd, whose SysProcAttr must set Pdeathsig. The kernel sends
// that signal when the starting thread ends, so a goroutine keeps the thread
// until the child has ended.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// status describes how a process ended, as an error even for a successful end.
func (p *process) status() error {
	if p.err != nil {
		return p.err
	}
	return errors.New("exit status 0")
}

// stop shuts a server down and waits: orderly until stopTimeout or the end of
// ctx, then at once.
func (p *process) stop(ctx context.Context) error {
	select {
	case <-p.done:
		return fmt.Errorf("server had ended by itself: %w", p.status())
	default:
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stopTimeout, fmt.Errorf("not shut down after %v", stopTimeout))
	defer cancel()
	if err := p.signal(syscall.SIGINT); err != nil {
		return errors.Join(err, p.kill())
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
	}
	return errors.Join(fmt.Errorf("stopped without a checkpoint: %w", context.Cause(ctx)), p.kill())
}

// kill stops a server at once and waits for it. It ignores the exit status.
func (p *process) kill() error {
	err := p.signal(syscall.SIGQUIT)
	timer := time.NewTimer(quitGrace)
	defer timer.Stop()
	select {
	case <-p.done:
		return err
	case <-timer.C:
	}
	err = errors.Join(err, p.signal(syscall.SIGKILL))
	<-p.done
	return err
}

// signal sends a signal; it ignores the error of a process that has ended.
func (p *process) signal(sig syscall.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if err == nil || errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return fmt.Errorf("send %v to process %d: %w", sig, p.pid(), err)
}
