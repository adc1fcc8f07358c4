// Package temptest keeps the temporary files of tests in memory, for tests that
// wait for syncs and do not depend on them. Tests of durability, and tests that
// count writes to a disk, stay in the system's temporary directory.
package temptest

import (
	"errors"
	"fmt"
	"os"

	"github.com/varvedb/varve/internal/filesync"
)

// memory is a file system in memory that most systems with Linux have.
const memory = "/dev/shm"

// enough is the free space in bytes with which memory is used.
const enough = 4 << 30

// MkdirTemp creates a directory as os.MkdirTemp does: in memory if there is
// enough of it, else in the system's temporary directory.
func MkdirTemp(pattern string) (string, error) {
	if free, err := filesync.Free(memory); err == nil && free >= enough {
		return os.MkdirTemp(memory, pattern)
	}
	return os.MkdirTemp("", pattern)
}

// Runner is the tests of a package, as goleak.VerifyTestMain takes them.
type Runner func() int

// Run runs the tests and returns the exit code.
func (run Runner) Run() int { return run() }

// InMemory returns a runner that runs the tests of a package with a temporary
// directory by MkdirTemp. The tests fail if they leave anything in it:
//
//	func TestMain(m *testing.M) { os.Exit(temptest.InMemory(m.Run).Run()) }
func InMemory(run Runner) Runner {
	return func() int {
		dir, err := MkdirTemp("varve-tests-")
		if err == nil {
			err = os.Setenv("TMPDIR", dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "temporary directory of the tests:", err)
			return 1
		}
		code := run()
		// Directories are not removed with their contents, so that leftovers show.
		if err := os.Remove(dir); err != nil {
			fmt.Fprintln(os.Stderr, "left by the tests:", errors.Join(err, os.RemoveAll(dir)))
			code = max(code, 1)
		}
		return code
	}
}
