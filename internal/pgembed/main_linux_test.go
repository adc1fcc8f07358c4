package pgembed

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/varvedb/varve/internal/temptest"
)

// helperDir is the variable that makes the test binary a process that starts
// the server of a directory, reports that, and waits to be killed.
const helperDir = "PGEMBED_TEST_HELPER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		os.Exit(help(dir))
	}
	// Most of the time of these tests is spent on syncs, and no test depends on
	// them.
	goleak.VerifyTestMain(temptest.InMemory(func() int {
		code := m.Run()
		if err := os.RemoveAll(template.dir); err != nil {
			fmt.Println(err)
			code = 1
		}
		return code
	}))
}

func help(dir string) int {
	s, err := Start(context.Background(), Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started", s.PIDs()[0])
	select {}
}
