package pgembed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ours is the cluster name that marks servers started by this package. It is on
// their command line and in the titles of their processes.
const ours = "varve"

// pollEvery is how often conditions are checked that no event tells of.
const pollEvery = 10 * time.Millisecond

// Server is a running server. Its methods may be called from several
// goroutines.
type Server struct {
	cfg     Config
	bins    binaries
	owner   *identity
	version string

	// Each of these is nil or empty until Start has made it.
	lock   *os.File
	socket *socketDir
	proc   *process

	mu      sync.Mutex // guards stopped and serialises Stop
	stopped bool
}

// Start starts the server of cfg.Dir and returns once it accepts connections.
// It fails with driver.ErrLocked when another process has the directory
// started, with driver.ErrUnsupported for data of another major version, and
// with driver.ErrDiskFull or driver.ErrReadOnly when that is why the server did
// not start. An error carries the last lines that the server wrote; after one
// nothing runs. The context bounds the start alone.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
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

// start takes the steps of Start; release undoes those that were taken.
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
	if s.bins, err = findBinaries(ctx, s.cfg, s.owner); err != nil {
		return err
	}
	if err := s.prepareData(ctx); err != nil {
		return err
	}
	if s.socket, err = makeSocketDir(s.cfg.Dir, s.owner); err != nil {
		return err
	}
	if err := writeService(s.cfg.servicePath(), s.socket.path); err != nil {
		return err
	}
	return s.launchReady(ctx)
}

// launches is how often the server is started before it must be ready.
const launches = 3

// launchReady starts the server and waits until it is ready. A server that a killed
// process had just started can be overlooked: until it works in the data directory
// nothing tells it from other programs. Then ours finds its lock file and ends; the
// other one has lost its parent, is found now, and makes way.
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
		if n == launches || !lostRace(err) {
			return err
		}
		if err := clearLeftovers(ctx, s.cfg.dataDir(), s.cfg.StopTimeout); err != nil {
			return err
		}
	}
}

// lostRace tells whether a server ended because another one had the data directory.
func lostRace(err error) bool {
	var wrote *logError
	return errors.As(err, &wrote) && strings.Contains(wrote.text, `lock file "postmaster.pid" already exists`)
}

// prepareData checks the data directory or makes it, and sees to it that no
// server runs on it.
func (s *Server) prepareData(ctx context.Context) error {
	exists, err := checkData(s.cfg.dataDir())
	if err != nil {
		return err
	}
	if !exists {
		return initData(ctx, s.bins, s.owner, s.cfg.dataDir())
	}
	return clearLeftovers(ctx, s.cfg.dataDir(), s.cfg.StopTimeout)
}

// launch starts the server's process. It writes straight into the log file:
// nothing in this process stands between a server and its log.
func (s *Server) launch() error {
	log, err := os.OpenFile(s.cfg.logPath(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := s.owner.own(log.Name()); err != nil {
		return err
	}
	cmd := s.owner.command(s.bins.postgres, s.args()...)
	cmd.Stdout, cmd.Stderr = log, log
	// SIGQUIT stops the server at once, without the checkpoint that an orderly
	// shutdown would still spend after its parent has died.
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	s.proc, err = launch(cmd)
	return err
}

// args returns the server's command line. The settings that this package
// decides come last and so would win.
func (s *Server) args() []string {
	args := []string{"-D", s.cfg.dataDir()}
	for _, set := range s.cfg.Settings {
		args = append(args, "-c", set.Name+"="+set.Value)
	}
	for _, set := range []string{
		"listen_addresses=",
		"port=" + socketPort,
		"unix_socket_directories=" + s.socket.path,
		"unix_socket_permissions=0700",
		"logging_collector=off",
		"log_destination=stderr",
		"cluster_name=" + ours,
	} {
		args = append(args, "-c", set)
	}
	return args
}

// waitReady waits until the server accepts connections and says its version.
func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.StartTimeout,
		fmt.Errorf("not ready after %v", s.cfg.StartTimeout))
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !readPIDFile(s.cfg.dataDir()).readyAs(s.proc.pid()) {
		select {
		case <-s.proc.done:
			return s.withLog(fmt.Errorf("server ended while starting: %w", s.proc.status()))
		case <-ctx.Done():
			return s.withLog(context.Cause(ctx))
		case <-tick.C:
		}
	}
	cfg, err := s.ConnConfig()
	if err != nil {
		return err
	}
	conn, err := pgconn.ConnectConfig(ctx, &cfg.Config)
	if err != nil {
		return s.withLog(err)
	}
	s.version = conn.ParameterStatus("server_version")
	return conn.Close(ctx)
}

// SocketDir returns the directory of the server's Unix socket.
func (s *Server) SocketDir() string { return s.socket.path }

// Ended is closed when the server has ended: after Stop, or by itself, since nobody
// starts it again.
func (s *Server) Ended() <-chan struct{} { return s.proc.done }

// ConnConfig returns how to connect to the server, to which the environment adds nothing.
func (s *Server) ConnConfig() (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(connString(s.socket.path, s.cfg.servicePath()))
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams = map[string]string{}
	return cfg, nil
}

// Version returns the server's version as it tells itself, such as "18.3".
func (s *Server) Version() string { return s.version }

// LogPath returns the file that the server writes its log to.
func (s *Server) LogPath() string { return s.cfg.logPath() }

// PIDs returns the server's processes, the first one being the parent of the
// others. It is empty once the server has ended.
func (s *Server) PIDs() []int {
	select {
	case <-s.proc.done:
		return nil
	default:
		return tree(s.proc.pid())
	}
}

// Stop shuts the server down and waits until none of its processes is left.
// Open connections are ended. When ctx is done or Config.StopTimeout has passed
// the server is stopped at once, without a checkpoint, and Stop says so;
// nothing that was committed is lost by that. Stop also tells when the server
// had ended before. A second Stop returns nil.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	err := s.proc.stop(ctx, s.cfg.StopTimeout)
	if err != nil {
		err = s.withLog(err)
	}
	if err = errors.Join(err, s.release()); err != nil {
		return fmt.Errorf("postgres: stop %q: %w", s.cfg.Dir, err)
	}
	return nil
}

// release gives back what start took. The server's main process has ended.
func (s *Server) release() error {
	var errs []error
	if s.proc != nil {
		errs = append(errs, endHolders(s.cfg.dataDir()))
	}
	if s.socket != nil {
		errs = append(errs, s.socket.remove())
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

// logError is an error together with what a program wrote last.
type logError struct {
	err  error
	text string
}

func (e *logError) Error() string {
	if e.text == "" {
		return e.err.Error() + "; it wrote nothing"
	}
	return e.err.Error() + "; it wrote:\n\t" + strings.ReplaceAll(e.text, "\n", "\n\t")
}

func (e *logError) Unwrap() error { return e.err }
