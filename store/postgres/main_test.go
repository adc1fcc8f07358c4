package postgres

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/varvedb/varve/internal/pgtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(runner(func() int {
		defer os.RemoveAll(template.dir)
		return pgtest.Main(m)
	}))
}

// runner is what goleak takes for a *testing.M.
type runner func() int

// Run runs the tests.
func (f runner) Run() int { return f() }
