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
	"strconv"
	"strings"
	"sync"
	"time"
)

// Command returns the command of a worker process, to which the configuration is
// the last argument or otherwise known; see WorkerMain.
type Command func(ctx context.Context, config string) *exec.Cmd

// victim is who is killed.
type victim int

const (
	killWorker  victim = iota // and with it what the kernel ends when it dies
	killServer                // the first of the engine's own processes, then the worker
	killBackend               // another of the engine's own processes, then the worker
)

// plan says when a worker is killed, or what else is done: a time after it has begun a
// phase. An empty phase is any, once it is at work. A nil plan lets it end by itself.
type plan struct {
	phase  string
	delay  time.Duration
	victim victim
	pick   int           // which of several processes
	linger time.Duration // between a process of the engine and the worker

	act func() error // what is done instead of killing, if given
}

// ending is how a worker's life ended.
type ending struct {
	killed  bool
	victim  victim
	phase   string // it was in
	checked bool   // it had opened the store and compared it with the journal
	found   int    // steps there that nobody had acknowledged
	lost    int    // steps acknowledged that were not there, where they need not be
	code    int
	broken  bool   // it found a violation
	said    string // violation or trouble
	stderr  string
	pids    []int // of the engine's own processes

	took map[string]time.Duration // of each phase, the last one that ended
}

// life is a running worker as its parent sees it.
type life struct {
	plan *plan
	cmd  *exec.Cmd

	mu     sync.Mutex
	end    ending
	timer  *time.Timer
	killed bool
	acted  chan error // what plan.act returned
}

// patience is how long a worker may live. One that lives longer hangs.
const patience = 2 * time.Minute

// runWorker runs a worker and kills it as planned. An error means that it could not
// be started.
func runWorker(ctx context.Context, command Command, config WorkerConfig, p *plan) (ending, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return ending{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errHangs)
	defer cancel()
	l := &life{plan: p, cmd: command(ctx, string(text)), acted: make(chan error, 1), end: ending{phase: phaseOpen, took: map[string]time.Duration{}}}
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

// errHangs: a worker outlived its time.
var errHangs = errors.New("it hangs")

// listen reads what the worker says until it ends, and starts the clock of the
// plan.
func (l *life) listen(lines *bufio.Scanner) {
	var began time.Time
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		what, rest, _ := strings.Cut(lines.Text(), " ")
		l.mu.Lock()
		switch what {
		case "begin":
			l.end.phase, began = rest, time.Now()
			if l.plan != nil && l.plan.phase == rest {
				l.arm()
			}
		case "end":
			l.end.took[rest] = time.Since(began)
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
			l.end.said, l.end.broken = rest, what == "violation"
		}
		l.mu.Unlock()
	}
}

// arm starts the clock, once. The caller holds the lock.
func (l *life) arm() {
	if l.timer == nil {
		l.timer = time.AfterFunc(l.plan.delay, l.strike)
	}
}

// strike kills whom the plan names. Of an engine without processes of its own only
// the worker can be.
func (l *life) strike() {
	if l.plan.act != nil {
		l.acted <- l.plan.act()
		return
	}
	l.mu.Lock()
	pids, victim := l.end.pids, killWorker
	if len(pids) > 0 {
		victim = l.plan.victim
	}
	l.killed, l.end.victim = true, victim
	l.mu.Unlock()
	if victim != killWorker {
		pid := pids[0]
		if victim == killBackend {
			pid = pids[l.plan.pick%len(pids)]
		}
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // it may have ended by itself: a backend does
		}
		time.Sleep(l.plan.linger)
	}
	_ = l.cmd.Process.Kill() // it has ended when the engine's death was an error to it
}
