package postgres

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/varvedb/varve/internal/pgtest"
)

// helperURL is the variable that turns the test binary into a process that
// opens a database, says so with the server's process, and waits to be killed.
const helperURL = "POSTGRES_TEST_HELPER_URL"

func TestMain(m *testing.M) {
	if url := os.Getenv(helperURL); url != "" {
		os.Exit(help(url))
	}
	goleak.VerifyTestMain(runner(func() int { return pgtest.Main(m) }))
}

// runner is what goleak takes for a *testing.M.
type runner func() int

// Run runs the tests.
func (f runner) Run() int { return f() }

func help(url string) int {
	e, err := openURL(url, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("opened", e.server.PIDs()[0])
	select {}
}
