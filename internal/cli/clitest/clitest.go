// Package clitest has helpers for the tests of commands.
package clitest

import (
	"bytes"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/crashtest"
)

// AsCommand is an environment variable that makes the test binary act as the
// command, for tests that need a separate process.
const AsCommand = "VARVE_AS_COMMAND"

// Main runs a command's TestMain and returns its exit code. The test binary
// acts as the worker of torture when it is started as one, and as the command
// when AsCommand is set.
func Main(m *testing.M) (code int) {
	if code, asked := crashtest.WorkerIfAsked(); asked {
		return code
	}
	if os.Getenv(AsCommand) != "" {
		return cli.Main()
	}
	return m.Run()
}

// Run runs the command in this process.
func Run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), args, &out, &errs)
	return out.String(), errs.String(), code
}

// Must runs a command that must succeed, and returns its output.
func Must(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := Run(t, args...)
	require.Equal(t, cli.ExitOK, code, "%s\n%s", out, errs)
	return out
}

// Output collects the output of a running command.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

// String returns the output so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
