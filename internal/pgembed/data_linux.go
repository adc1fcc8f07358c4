package pgembed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/store/driver"
)

// checkData reports whether a data directory exists. It refuses one with other
// contents, or of another version than Major.
func checkData(dataDir string) (exists bool, err error) {
	text, err := os.ReadFile(filepath.Join(dataDir, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(dataDir)
		if len(entries) > 0 {
			return false, fmt.Errorf("%q holds files but no PG_VERSION: %w", dataDir, driver.ErrCorrupt)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	if v := strings.TrimSpace(string(text)); err == nil && v != Major {
		return false, fmt.Errorf("%q holds data of PostgreSQL %s and this server is %s; "+
			"dump it with the former and load it into another directory: %w", dataDir, v, Major, driver.ErrUnsupported)
	}
	return err == nil, err
}

// initData creates a data directory with the user and the database. It uses a
// temporary name and renames the directory when it is complete, so that a data
// directory either works or does not exist. Everything is synced, by initdb and
// by the server's shutdown.
func initData(ctx context.Context, bin string, owner *identity, dataDir string) (err error) {
	if owner, err = owner.forInit(); err != nil {
		return err
	}
	part := dataDir + ".part"
	// The server of a killed initdb may still run for a moment.
	if err := errors.Join(endHolders(part), os.RemoveAll(part)); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(owner.explainStart(err), endHolders(part), os.RemoveAll(part))
		}
	}()
	initdb := owner.command(filepath.Join(bin, "initdb"), "-D", part, "-U", User, "--auth-local=trust", "--auth-host=reject",
		"--locale=C", "--encoding=UTF8", "--data-checksums", "--no-instructions",
		"--set=TimeZone=UTC", "--set=log_timezone=UTC")
	if _, err := run(ctx, initdb); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	single := owner.command(filepath.Join(bin, "postgres"), "--single", "-c", "exit_on_error=on", "-D", part, "postgres")
	single.Stdin = strings.NewReader("CREATE DATABASE " + Database + "\n")
	if _, err := run(ctx, single); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	// os.Rename would refuse to replace a directory, even an empty one.
	if err := syscall.Rename(part, dataDir); err != nil {
		return &os.LinkError{Op: "rename", Old: part, New: dataDir, Err: err}
	}
	return filesync.Dir(filepath.Dir(dataDir))
}

// run runs a program to its end and returns its output. If ctx ends first, the
// program is killed with everything it started.
func run(ctx context.Context, cmd *exec.Cmd) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = quitGrace
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	p, err := launch(cmd)
	if err != nil {
		return "", err
	}
	select {
	case <-p.done:
		err = p.err
	case <-ctx.Done():
		// The program leads a separate process group.
		_ = syscall.Kill(-p.pid(), syscall.SIGKILL) // it may have ended meanwhile
		<-p.done
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", &logError{err: err, text: lastLines(out.Bytes())}
	}
	return out.String(), nil
}
