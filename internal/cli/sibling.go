package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/build"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/store/driver"
)

// Some engines cannot be linked into one program. This file finds the program
// that links another engine. That program then measures in a separate process
// (child), lists its engines (engines), or takes over the command (every
// command with a store).

// siblingGuard is set in the environment of a command that was started by its
// sibling, so that the two do not start each other for ever.
const siblingGuard = "VARVE_SIBLING"

// linked reports whether this program links the library for an engine's files,
// or for its servers if that is a different library.
func linked(name string, remote bool) bool {
	d, ok := driver.Lookup(name)
	client := engine.Find(name).Client
	return ok && (client == "" || (d.Info.Library == client) == remote)
}

// commandFor returns the name of the command that links it.
func commandFor(name string, remote bool) string { return cmp.Or(onlyIn(name, remote), engine.Main) }

// onlyIn returns the name of the only command that links it, or "" if all do.
func onlyIn(name string, remote bool) string {
	if remote {
		return engine.Find(name).Serves
	}
	return engine.Find(name).Command
}

// programFor returns a program that links it: this one, the sibling in the same
// directory or in the PATH, or one built now if the module's source is
// available.
func programFor(ctx context.Context, name string, remote bool) (string, error) {
	self, err := os.Executable()
	if err != nil || linked(name, remote) {
		return self, err
	}
	command := commandFor(name, remote)
	onPath, _ := exec.LookPath(command) // "" is no file
	for _, path := range []string{filepath.Join(filepath.Dir(self), command), onPath} {
		if isOther(path, self) {
			return path, nil
		}
	}
	return buildSibling(ctx, command)
}

// isOther reports whether a path is a program other than this one.
func isOther(path, self string) bool {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	own, err := os.Stat(self)
	return err == nil && !os.SameFile(st, own)
}

// buildSibling builds the sibling command into the user's cache. The go command
// does nothing if it is up to date.
func buildSibling(ctx context.Context, name string) (string, error) {
	hint := fmt.Errorf("put %s in this binary's directory or on the PATH: go install %s/cmd/%s@latest", name, engine.Module, name)
	if name == engine.Main && !build.Read().Cgo {
		hint = fmt.Errorf("this program was built without cgo; with gcc and g++: go install %s/cmd/%s@latest; sqlitego: opens the files of sqlite: without them", engine.Module, name)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", errors.Join(hint, err)
	}
	path := filepath.Join(cache, "varve", "bin", name)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, engine.Module+"/cmd/"+name)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		if exec.CommandContext(ctx, "go", "list", engine.Module+"/cmd/"+name).Run() != nil {
			return "", hint // no source is at hand, or no go
		}
		return "", fmt.Errorf("%w (building it here: %w: %s)", hint, err, strings.TrimSpace(stderr.String()))
	}
	return path, nil
}

// otherProgram returns the program for stores that this one cannot open; ""
// when this one should try.
func otherProgram(ctx context.Context, urls []string) (path string, err error) {
	if os.Getenv(siblingGuard) != "" {
		return "", nil
	}
	type need struct {
		name   string
		remote bool
		url    string
	}
	var all, missing []need
	for _, text := range urls {
		u, err := driver.ParseURL(text)
		if err != nil || !slices.Contains(engine.Names(), u.Scheme) {
			continue // a file, or an argument that the command itself will refuse
		}
		n := need{u.Scheme, engine.Find(u.Scheme).Remote(u), driver.Redact(text)}
		all = append(all, n)
		if !linked(n.name, n.remote) {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		return "", nil
	}
	first := missing[0]
	for _, n := range all {
		if theirs := onlyIn(n.name, n.remote); theirs != "" && theirs != commandFor(first.name, first.remote) {
			return "", usageError{fmt.Errorf("no program opens %s and %s, whose libraries cannot be linked together; go by a backup: "+
				"varve backup the one, and varve restore the other of it", first.url, n.url)}
		}
	}
	if path, err = programFor(ctx, first.name, first.remote); err != nil {
		err = fmt.Errorf("open %s: its engine is not in this program: %w", first.url, err)
	}
	return path, err
}

// handOver runs a command line in another program. Where the system has exec,
// this process is replaced, so output and exit code are the other program's.
func (e *env) handOver(path string, args []string) error {
	environ := append(os.Environ(), siblingGuard+"=1")
	if err := e.become(path, args, environ); !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("run %s: %w", path, err)
	}
	cmd := exec.CommandContext(e.ctx, path, args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, os.Stdin, e.stdout, e.stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptGrace
	err := cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.Exited() {
		return exitStatus(ended.ExitCode())
	}
	return err
}

// become replaces this process by another program, unless the command was
// called within a process (as in tests).
func (e *env) become(path string, args, environ []string) error {
	if e.stdout != io.Writer(os.Stdout) || e.stderr != io.Writer(os.Stderr) {
		return errors.ErrUnsupported
	}
	return become(path, args, environ)
}

// siblingEngines asks the sibling for an engine's description.
func siblingEngines(e *env, listed engine.Engine, remote bool) (found []engineInfo, err error) {
	if os.Getenv(siblingGuard) != "" {
		return nil, nil // asked by the other: only our own
	}
	path, err := programFor(e.ctx, listed.Name, remote)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(e.ctx, path, "engines", "--json")
	cmd.Env = append(os.Environ(), siblingGuard+"=1")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", path, err)
	}
	var list []engineInfo
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", path, err)
	}
	for _, info := range list {
		if info.Name == listed.Name && (info.Library == listed.Client) == remote {
			found = append(found, info)
		}
	}
	return found, nil
}
