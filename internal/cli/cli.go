// Package cli is the varve command. cmd/varve and cmd/varve-libsql are the same
// command with different engines linked.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"github.com/varvedb/varve/internal/crashtest"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/service/server"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// Exit codes of the command.
const (
	ExitOK    = 0
	ExitError = 1
	ExitUsage = 2
	// ExitNotChecked is the exit code of check when a part could not be checked
	// and the rest is sound, and of bench diff when there are too few
	// repetitions.
	ExitNotChecked = 3
	// ExitInterrupted is the exit code of a shell for a command ended by
	// SIGINT.
	ExitInterrupted = 130
)

// commands has the commands and their flags.
type commands struct {
	Import importCmd `cmd:"" group:"store" help:"Read blocks from a tar, lines of JSON, an Arkiv SQLite database, another store or generated data of any size into a store or a file."`
	Follow followCmd `cmd:"" group:"store" help:"Follow an Arkiv chain into a store, from an execution client's JSON-RPC, over reorganisations."`
	Events eventsCmd `cmd:"" group:"store" help:"Append, read and follow the events of an event store, as lines of JSON."`

	Query   queryCmd     `cmd:"" group:"look" help:"Print the entities that match a query, at the head or at a past block."`
	History historyCmd   `cmd:"" group:"look" help:"Print the versions of an entity, the newest first: what happened to it, and at which block."`
	Diff    blockDiffCmd `cmd:"" group:"look" help:"Print the entities that differ between two blocks."`
	Log     logCmd       `cmd:"" group:"look" help:"Print the blocks, the newest first, and how many entities each changed."`
	Inspect inspectCmd   `cmd:"" group:"look" help:"Print a store's layout, counts, block range, digest, sizes and settings."`

	Check   checkCmd   `cmd:"" group:"safe" help:"Look for damage in a store, compare it with its source, or rebuild derived data."`
	Backup  backupCmd  `cmd:"" group:"safe" help:"Copy a store row by row while it is in use, and verify the copy."`
	Restore restoreCmd `cmd:"" group:"safe" help:"Make a store of a backup, on any engine that has its layouts."`

	Serve  serveCmd  `cmd:"" group:"serve" help:"Serve a store over REST and gRPC, with encrypted payloads."`
	Node   nodeCmd   `cmd:"" group:"serve" help:"Follow an Arkiv chain into a store, and serve Arkiv's JSON-RPC from it."`
	Health healthCmd `cmd:"" group:"serve" help:"Ask a running varve serve whether it is ready."`

	Answer  answerCmd  `cmd:"" group:"measure" help:"Answer five questions on this machine: most writes, most reads, both at once, growth, and whether V1 is carried."`
	Compare compareCmd `cmd:"" group:"measure" help:"Run all engines on the same blocks, each in its own process, and print them side by side."`
	Run     runCmd     `cmd:"" group:"measure" help:"Run the experiments of the catalogue and keep their results."`
	Bench   benchCmd   `cmd:"" group:"measure" help:"Compare results."`
	Report  reportCmd  `cmd:"" group:"measure" help:"Make a page of results, or their tables as Markdown."`
	Torture tortureCmd `cmd:"" group:"measure" help:"Kill processes that write to stores, cut their power, and check that nothing acknowledged is lost."`

	Engines    enginesCmd                `cmd:"" group:"about" help:"List the engines, their versions, their capabilities and their gaps."`
	Version    versionCmd                `cmd:"" group:"about" help:"Print the version of the program, the source that it was built from, and its engines."`
	Help       helpCmd                   `cmd:"" group:"about" help:"Print a page of the documentation."`
	Completion kongcompletion.Completion `cmd:"" group:"about" help:"Print how bash, zsh or fish complete the commands and flags of varve."`

	Lab labCmd `cmd:"" hidden:"" help:"Run one experiment on one engine for run."`
}

// env is passed to the Run methods of commands.
type env struct {
	ctx    context.Context
	stdout io.Writer
	stderr io.Writer
}

// Main runs the command of this process and returns its exit code. The first
// Ctrl-C ends work cleanly, a second one quickly.
func Main() int {
	if code, asked := crashtest.WorkerIfAsked(); asked {
		return code // this process is one that torture kills
	}
	// Run the command.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endSignals()...)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	left := make(chan int, 1)
	go func() { left <- Run(ctx, os.Args[1:], os.Stdout, os.Stderr) }()

	// Wait until it ends, or until two signals have asked it to.
	for asked := 0; asked < 2; {
		select {
		case code := <-left:
			return code
		case s := <-signals:
			if s != syscall.SIGHUP || !rereadsSecrets.Load() {
				asked++
				cancel()
			}
		}
	}

	// Leave when temporary files and children are gone.
	for begun := time.Now(); time.Since(begun) < cleanupTime || children.Load() > 0; time.Sleep(5 * time.Millisecond) {
		select {
		case code := <-left:
			return code
		default:
		}
	}
	return ExitInterrupted
}

// cleanupTime is how long the program may take, after a second signal, to
// remove temporary files once its children have ended. The signal shortens the
// children's time too.
const cleanupTime = time.Second

// rereadsSecrets is set while SIGHUP makes the command reread its secrets instead of
// ending it.
var rereadsSecrets atomic.Bool

// children counts child processes that are running or being cleaned up.
var children atomic.Int32

// endSignals are the signals that ask a command to end. SIGHUP of a closed
// terminal is included, unless nohup made the process ignore it.
func endSignals() []os.Signal {
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// Run runs the command and returns its exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var cmds commands
	code := -1
	parser, err := newParser(&cmds, kong.Writers(stdout, stderr), kong.Exit(func(c int) { code = c }))
	if err != nil {
		fmt.Fprintln(stderr, "varve:", err)
		return ExitError
	}
	kongcompletion.Register(parser, kongcompletion.WithExitFunc(func(c int) { code = c }))
	if code >= 0 {
		return code // a shell asked what may come next
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if code >= 0 {
		return code // help was asked for
	}
	if err != nil {
		of, wrong := "", (*kong.ParseError)(nil)
		if errors.As(err, &wrong) && wrong.Context.Selected() != nil {
			of = " " + wrong.Context.Selected().Path()
		}
		fmt.Fprintf(stderr, "varve: %s\nRun varve%s --help for its arguments and flags.\n", driver.Hide(err.Error(), args...), of)
		return ExitUsage
	}
	e := &env{ctx: ctx, stdout: stdout, stderr: stderr}
	code, message := exitCode(e.run(parsed, args))
	if message != "" {
		fmt.Fprintln(stderr, "varve:", driver.Hide(message, args...))
	}
	return code
}

// newParser returns the command-line parser that fills cmds.
func newParser(cmds *commands, more ...kong.Option) (*kong.Kong, error) {
	parser, err := kong.New(cmds, append(more,
		kong.Name("varve"),
		kong.Description(about),
		kong.ExplicitGroups(groups),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.UsageOnError(),
		kong.Vars{"trials": strings.Join(trialNames(), ", "), "engines": strings.Join(engine.Names(), ","), "layout": schemas.DefaultLayout},
	)...)
	if err == nil {
		showExamples(parser.Model.Node)
	}
	return parser, err
}

// run runs the command in this process, or in the program that links the
// engines of its stores.
func (e *env) run(parsed *kong.Context, args []string) error {
	if err := checkBounds(parsed); err != nil {
		return usageError{err}
	}
	other, err := otherProgram(e.ctx, stores(parsed))
	switch {
	case err != nil:
		return err
	case other != "":
		return e.handOver(other, args)
	}
	err = parsed.Run(e)
	// The error may already begin with the command's name, if the library's
	// operation has the same name.
	name := strings.TrimPrefix(parsed.Selected().FullPath(), "varve ") + ": "
	if err != nil && !strings.HasPrefix(err.Error(), name) {
		err = fmt.Errorf("%s%w", name, err)
	}
	return err
}

// stores returns the values of arguments and flags that may be store URLs, by
// their type.
func stores(parsed *kong.Context) (list []string) {
	for _, p := range parsed.Path {
		value := p.Positional
		if p.Flag != nil {
			value = p.Flag.Value
		}
		if value != nil && value.Tag.Has("store") {
			list = append(list, value.Target.String())
		}
	}
	return list
}

// usageError is a usage error that the parser cannot detect.
type usageError struct{ error }

func wrongUse(err error) bool {
	return errors.As(err, new(usageError)) || errors.Is(err, driver.ErrURL) || errors.Is(err, server.ErrUnsafe)
}

// exitStatus is an error that was already printed; only its exit code is left.
type exitStatus int

// Error implements error.
func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// exitCode returns the exit code and the message of an error.
func exitCode(err error) (code int, message string) {
	var status exitStatus
	switch {
	case err == nil:
		return ExitOK, ""
	case errors.As(err, &status):
		return int(status), ""
	case wrongUse(err):
		return ExitUsage, err.Error()
	case errors.Is(err, context.Canceled):
		return ExitInterrupted, "interrupted" + strings.ReplaceAll(": "+err.Error(), ": "+context.Canceled.Error(), "")
	case errors.Is(err, errNotChecked):
		return ExitNotChecked, err.Error()
	}
	return ExitError, err.Error()
}
