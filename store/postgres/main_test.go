package postgres

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/internal/temptest"
)

func TestMain(m *testing.M) {
	// The tests look at a server's settings and answers, and not at its disk.
	goleak.VerifyTestMain(temptest.InMemory(func() int {
		code := pgtest.Main(m)
		_ = os.RemoveAll(template.dir) // if this fails, the directory is reported as left
		return code
	}))
}
