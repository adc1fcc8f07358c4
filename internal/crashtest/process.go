package crashtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// workerEnv has the configuration of a worker, which is this program started
// again.
const workerEnv = "VARVE_CRASH_WORKER"

// WorkerIfAsked runs a worker and returns its exit code, if this process was
// started as one. Programs that run trials call it first.
func WorkerIfAsked() (code int, asked bool) {
	config, asked := os.LookupEnv(workerEnv)
	if !asked {
		return 0, false
	}
	return workerMain(context.Background(), config, os.Stdout), true
}

// plan says when to kill a worker or its server: some time after it has begun a
// phase. An empty phase means any, once it is working. With a nil plan the
// worker ends by itself.
type plan struct {
	phase  string
	delay  time.Duration
	server int           // which of the engine's processes is killed before the worker, from 1 on; 0: none
	pause  time.Duration // pause between the two

	act func() error // called instead of killing, if given
}

// ending is how a worker's life ended.
type ending struct {
	killed   bool
	server   bool   // a process of the engine was killed first
	phase    string // the worker's phase at that time
	checked  bool   // the worker had opened the store and compared it with the journal
	found    int    // unacknowledged steps that the store has
	lost     int    // acknowledged steps that the store may lack and does
	code     int
	broken   bool   // it found a violation
	unusable bool   // the store cannot be used for further trials
	message  string // the violation or error
	stderr   string
	pids     []int // of the engine's own processes
}

// life is a running worker, seen from its parent.
type life struct {
	plan *plan
	cmd  *exec.Cmd

	mu     sync.Mutex
	end    ending
	timer  *time.Timer
	killed bool
	acted  chan error // what plan.act returned
}

// patience bounds a worker's life; a worker that lives longer hangs.
const patience = 2 * time.Minute

// runWorker runs this program again as a worker, under the given tracer if any,
// and kills it as planned. An error means that it could not be started.
func runWorker(ctx context.Context, config workerConfig, p *plan, tracer ...string) (ending, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return ending{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errHangs)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return ending{}, err
	}
	args := slices.Concat(tracer, []string{self})
	l := &life{plan: p, cmd: exec.CommandContext(ctx, args[0], args[1:]...), acted: make(chan error, 1), end: ending{phase: phaseOpen}}
	l.cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	var stderr bytes.Buffer
	l.cmd.Stderr = &stderr
	l.cmd.WaitDelay = time.Second
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return ending{}, err
	}
	if err := l.cmd.Start(); err != nil {
		return ending{}, err
	}
	l.listen(bufio.NewScanner(out))
	err = l.cmd.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil && !l.timer.Stop() && p.act != nil {
		if err := <-l.acted; err != nil {
			return l.end, err
		}
	}
	l.end.code, l.end.killed, l.end.stderr = l.cmd.ProcessState.ExitCode(), l.killed, stderr.String()
	if ctx.Err() != nil && !l.killed {
		return l.end, fmt.Errorf("worker in phase %q: %w", l.end.phase, context.Cause(ctx))
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return l.end, err
	}
	return l.end, nil
}

// errHangs: a worker outlived its time limit.
var errHangs = errors.New("it hangs")

// listen reads the worker's output until it ends, and starts the plan's timer.
func (l *life) listen(lines *bufio.Scanner) {
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		what, rest, _ := strings.Cut(lines.Text(), " ")
		l.mu.Lock()
		switch what {
		case "begin":
			l.end.phase = rest
			if l.plan != nil && l.plan.phase == rest {
				l.arm()
			}
		case "end":
			l.end.phase = phaseBetween
			l.end.checked = l.end.checked || rest == phaseCheck
		case "processes":
			for _, pid := range strings.Fields(rest) {
				n, _ := strconv.Atoi(pid) // the worker printed a number
				l.end.pids = append(l.end.pids, n)
			}
		case "running":
			if l.plan != nil && l.plan.phase == "" {
				l.arm()
			}
		case "found":
			_, _ = fmt.Sscan(rest, &l.end.found, &l.end.lost) // the worker printed numbers
		case "violation", "trouble":
			l.end.message, l.end.broken = rest, what == "violation"
		}
		l.mu.Unlock()
	}
}

// arm starts the timer once. The caller holds the lock.
func (l *life) arm() {
	if l.timer == nil {
		l.timer = time.AfterFunc(l.plan.delay, l.kill)
	}
}

// kill kills the process that the plan names. If the engine runs inside the
// worker, that is the worker.
func (l *life) kill() {
	if l.plan.act != nil {
		l.acted <- l.plan.act()
		return
	}
	l.mu.Lock()
	pids := l.end.pids
	l.killed, l.end.server = true, len(pids) > 0 && l.plan.server > 0
	server := l.end.server
	l.mu.Unlock()
	if server {
		if p, err := os.FindProcess(pids[(l.plan.server-1)%len(pids)]); err == nil {
			_ = p.Kill() // it may have ended by itself: a backend does
		}
		time.Sleep(l.plan.pause)
	}
	_ = l.cmd.Process.Kill() // it has ended when the engine's death was an error to it
}
