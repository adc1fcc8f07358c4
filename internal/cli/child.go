package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/memlimit"
	"github.com/varvedb/varve/internal/pgembed"
)

// child runs a command of this program, or of the program that links an engine,
// in a separate process group. A terminal's Ctrl-C therefore reaches only the
// parent, which interrupts the child once.
type child struct {
	of      bench.Engine
	args    []string
	dir     string        // in which its temporary files get a directory; the system's when empty
	apart   bool          // it has a separate cache of data sets in its temporary directory
	memory  int64         // memory budget of it and its children, in bytes; 0 is none
	timeout time.Duration // after which it is killed; 0 is never

	messages io.Writer // receives its standard error
	quiet    bool      // messages are not printed, unless it crashes
}

// interruptGrace is the time that an interrupted child gets to close its database.
const interruptGrace = 20 * time.Second

// run runs the child and leaves nothing behind, because the child's files are
// in a directory of the parent. A second signal to the parent kills the child
// at once.
func (c *child) run(e *env) (err error) {
	children.Add(1)
	defer children.Add(-1)

	// Find the program, and receive signals in place of the child.
	binary, err := programFor(e.ctx, c.of.Name, false)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endSignals()...)
	defer func() { signal.Stop(signals); close(signals) }()

	// Make the memory limit and the directory of temporary files.
	var budget *memlimit.Group
	var unlimited error
	if c.memory > 0 {
		if budget, unlimited = memlimit.New(c.memory); unlimited == nil {
			defer func() { err = errors.Join(err, budget.Close()) }()
		}
	}
	temp, err := filesync.TempDir(filepath.Join(cmp.Or(c.dir, os.TempDir()), "varve"), pgembed.RemoveSockets)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.clean(temp)) }()

	// Prepare the command.
	ctx, cancel := context.WithTimeout(e.ctx, cmp.Or(c.timeout, math.MaxInt64))
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, c.args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp.Path())
	if c.of.Server != "" {
		cmd.Env = append(cmd.Env, serverVariable+"="+c.of.Server)
	}
	if c.apart {
		cmd.Env = append(cmd.Env, bench.CacheEnv+"="+filepath.Join(temp.Path(), "cache"))
	}
	// If this process is killed, a later command removes the child's files. The
	// child, and any server it has started, inherit the lock and keep the files
	// from being removed while they live.
	cmd.ExtraFiles = []*os.File{temp.Lock()}
	// The kernel kills the child when the parent's thread ends, so the
	// goroutine must stay on this thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptGrace
	var tail tailWriter
	cmd.Stderr = io.MultiWriter(c.messages, &tail)

	// Start it, under the memory limit if the system has one, and wait.
	start := cmd.Start
	switch {
	case budget != nil:
		start = func() error { return budget.Start(cmd) }
	case unlimited != nil:
		cmd.Env = append(cmd.Env, memlimit.Variable+"="+unlimited.Error())
	}
	err = start()
	if err == nil {
		go killAtSecond(signals, cmd.Process)
		err = cmd.Wait()
	}

	// Say why it failed. Its time can be over before it has started.
	switch {
	case err != nil && ctx.Err() != nil && e.ctx.Err() == nil:
		err = fmt.Errorf("ended after %s; varve run has --timeout for more", c.timeout)
	case err != nil && cmd.ProcessState == nil:
		return err
	case err != nil:
		if code := cmd.ProcessState.ExitCode(); c.quiet && code != ExitError && e.ctx.Err() == nil {
			_, _ = e.stderr.Write(tail) // the messages of a crash
		}
		err = fmt.Errorf("%w: %s", err, tail.lastLine())
	}
	if err != nil && budget != nil && budget.Killed() > 0 {
		err = fmt.Errorf("killed, because it needed more memory than --memory gives, %s: %w", size(uint64(c.memory)), err)
	}
	return err
}

// killAtSecond kills a process at the second signal. The context handles the
// first.
func killAtSecond(signals <-chan os.Signal, p *os.Process) {
	<-signals
	if _, second := <-signals; second {
		_ = p.Kill() // it may have ended
	}
}

// clean waits until servers that the child had started have ended, and removes
// its files.
func (c *child) clean(temp *filesync.Temp) (err error) {
	for begun := time.Now(); err == nil && running("TMPDIR="+temp.Path(), time.Since(begun) > interruptGrace); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > 2*interruptGrace {
			err = fmt.Errorf("processes of %s do not end; ps shows them", c.of.Label())
		}
	}
	err = errors.Join(err, pgembed.RemoveSockets(temp.Path()), temp.Remove())
	if !c.apart {
		err = errors.Join(err, bench.SweepCache())
	}
	return err
}

// running reports whether processes have a variable in their environment, and
// kills them if asked to. An embedded server has a separate session, so no
// process group finds it. The kernel tells the server to end when the child is
// killed, and it ends after its worker processes.
func running(variable string, kill bool) (found bool) {
	all, _ := procfs.AllProcs() // without /proc there is none
	for _, p := range all {
		process, err := os.FindProcess(p.PID) // opened before the check, so that its number cannot be reused
		if err != nil {
			continue
		}
		if env, _ := p.Environ(); slices.Contains(env, variable) {
			found = true
			if kill {
				_ = process.Kill() // it may have ended
			}
		}
		_ = process.Release()
	}
	return found
}

// tailBytes is enough for a crash report.
const tailBytes = 64 << 10

// tailWriter keeps the last bytes of a child's output.
type tailWriter []byte

func (t *tailWriter) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	*t = (*t)[max(0, len(*t)-tailBytes):]
	return len(p), nil
}

func (t tailWriter) lastLine() string {
	text := strings.TrimSpace(string(t))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
