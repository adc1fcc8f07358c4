package postgres

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/varvedb/varve/internal/pgtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(runner(func() int {
		code := pgtest.Main(m)
		_ = os.RemoveAll(template.dir) // not deferred: the directory is only known now
		return code
	}))
}

// runner is what goleak takes for a *testing.M.
type runner func() int

// Run runs the tests.
func (f runner) Run() int { return f() }
