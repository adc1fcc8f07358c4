package pgembed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/store/driver"
)

// ours is the cluster name that marks servers started by this package. It is on
// their command line and in the titles of their processes.
const ours = "varve"

// pollEvery is the polling interval for conditions that cause no event.
const pollEvery = 10 * time.Millisecond

// Server is a running server. Its methods may be called from several goroutines.
type Server struct {
	cfg   Config
	bin   string // directory of its programs
	owner *identity

	// Each of these is nil or empty until start has created it.
	lock   *os.File
	socket string // directory of its socket
	proc   *process

	mu      sync.Mutex // guards stopped and serialises Stop
	stopped bool
}

// Start starts the server of cfg.Dir and returns once it accepts connections.
// It fails with driver.ErrLocked when another process has a server running in
// the directory, with driver.ErrUnsupported for data of another major version,
// and with driver.ErrDiskFull or driver.ErrReadOnly when that kept the server
// from starting. The error includes the last lines of the server's log; after
// an error nothing is running. The context bounds the start only.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	s := &Server{cfg: cfg}
	if err := s.start(ctx); err != nil {
		err = errors.Join(explain(cfg.Dir, err), s.release())
		return nil, fmt.Errorf("postgres: start %q: %w", cfg.Dir, err)
	}
	return s, nil
}

// start does the steps of Start; release undoes the completed ones.
func (s *Server) start(ctx context.Context) (err error) {
	if err := os.MkdirAll(s.cfg.Dir, 0o700); err != nil {
		return err
	}
	if s.lock, err = lockDir(ctx, s.cfg.Dir); err != nil {
		return err
	}
	if s.owner, err = identify(s.cfg.Dir); err != nil {
		return err
	}
	if s.bin, err = findBinaries(ctx, s.cfg.BinDir, s.owner); err != nil {
		return err
	}
	exists, err := checkData(s.cfg.dataDir())
	if err == nil && exists {
		err = clearLeftovers(ctx, s.cfg.dataDir())
	} else if err == nil {
		err = initData(ctx, s.bin, s.owner, s.cfg.dataDir())
	}
	if err != nil {
		return err
	}
	if s.socket, err = makeSocketDir(s.cfg.Dir, s.owner); err != nil {
		return err
	}
	if err := writeService(s.cfg.servicePath(), s.socket); err != nil {
		return err
	}
	return s.launchReady(ctx)
}

// launches is how often the server is started before it must be ready.
const launches = 3

// launchReady starts the server and waits until it is ready. A server that a
// killed process had just started may be overlooked at first, because nothing
// identifies it until it works in the data directory. Then the new server finds
// the other's lock file and ends; the other one is now found as orphaned, is
// shut down, and the launch is repeated.
func (s *Server) launchReady(ctx context.Context) error {
	for n := 1; ; n++ {
		if err := s.launch(); err != nil {
			return err
		}
		err := s.waitReady(ctx)
		if err == nil {
			return nil
		}
		err = errors.Join(err, s.proc.kill())
		var wrote *logError
		if n == launches || !errors.As(err, &wrote) || !strings.Contains(wrote.text, `lock file "postmaster.pid" already exists`) {
			return err
		}
		if err := clearLeftovers(ctx, s.cfg.dataDir()); err != nil {
			return err
		}
	}
}

// launch starts the server's process. The server writes directly into the log
// file.
func (s *Server) launch() error {
	log, err := os.OpenFile(s.cfg.logPath(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := s.owner.own(log.Name()); err != nil {
		return err
	}
	args := []string{"-D", s.cfg.dataDir()}
	for _, set := range s.cfg.Settings {
		args = append(args, "-c", set.Name+"="+set.Value)
	}
	// The settings of this package come last, so that they override the user's.
	args = append(args, "-c", "listen_addresses=", "-c", "port="+socketPort,
		"-c", "unix_socket_directories="+s.socket, "-c", "unix_socket_permissions=0700",
		"-c", "logging_collector=off", "-c", "log_destination=stderr", "-c", "cluster_name="+ours)
	cmd := s.owner.command(filepath.Join(s.bin, "postgres"), args...)
	cmd.Stdout, cmd.Stderr = log, log
	// SIGQUIT stops the server at once when its parent dies, without the
	// checkpoint of an orderly shutdown.
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	s.proc, err = launch(cmd)
	return s.owner.explainStart(err)
}

// waitReady waits until the server accepts connections.
func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %v", startTimeout))
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if pid, ready := readPIDFile(s.cfg.dataDir()); ready && pid == s.proc.pid() {
			return nil
		}
		select {
		case <-s.proc.done:
			return s.withLog(fmt.Errorf("server ended while starting: %w", s.proc.status()))
		case <-ctx.Done():
			return s.withLog(context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// SocketDir returns the directory of the server's Unix socket.
func (s *Server) SocketDir() string { return s.socket }

// Ended returns a channel that is closed when the server has ended, after Stop
// or by itself. It is not restarted.
func (s *Server) Ended() <-chan struct{} { return s.proc.done }

// ConnConfig returns the configuration of connections to the server. It takes
// nothing from the environment.
func (s *Server) ConnConfig() (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(connString(s.socket, s.cfg.servicePath()))
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams = map[string]string{}
	return cfg, nil
}

// PIDs returns the server's processes; the first one is the parent of the
// others. It is empty once the server has ended.
func (s *Server) PIDs() []int {
	select {
	case <-s.proc.done:
		return nil
	default:
		main := s.proc.pid()
		others := slices.DeleteFunc(workersIn(s.cfg.dataDir()), func(pid int) bool { return pid == main })
		return append([]int{main}, others...)
	}
}

// Stop shuts the server down and waits until all of its processes have ended.
// Open connections are closed. When ctx ends or stopTimeout has passed, the
// server is stopped at once, without a checkpoint, and Stop returns an error
// that says so; committed data are not lost by that. Stop also returns an error
// if the server had ended before. A second Stop returns nil.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	err := s.proc.stop(ctx)
	if err != nil {
		err = s.withLog(err)
	}
	if err = errors.Join(err, s.release()); err != nil {
		return fmt.Errorf("postgres: stop %q: %w", s.cfg.Dir, err)
	}
	return nil
}

// release releases everything that start acquired. The server's main process
// has ended.
func (s *Server) release() error {
	var errs []error
	if s.proc != nil {
		errs = append(errs, endHolders(s.cfg.dataDir()))
	}
	if s.socket != "" {
		errs = append(errs, clearSocketDir(filepath.Join(s.cfg.Dir, socketLink)))
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// withLog adds the end of the server's log to err.
func (s *Server) withLog(err error) error {
	text, readErr := readTail(s.cfg.logPath())
	return errors.Join(&logError{err: err, text: text}, readErr)
}

// lockPatience is how long to wait for an abandoned lock: a child that a killed
// process was just starting holds it until it runs its program.
const lockPatience = time.Second

// lockDir takes the lock of a server's directory. The lock ends with the open
// file, and so with the process. The file itself stays, because if it were
// removed, two processes could hold two locks.
func lockDir(ctx context.Context, dir string) (*os.File, error) {
	locked := fmt.Errorf("another process has this server started: %w", driver.ErrLocked)
	ctx, cancel := context.WithTimeoutCause(ctx, lockPatience, locked)
	defer cancel()
	return filelease.Wait(ctx, filepath.Join(dir, "lock"), 0o600)
}
