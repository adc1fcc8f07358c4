package pgembed

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// helperDir is the variable that turns the test binary into a process that
// starts the server of a directory, says so, and waits to be killed.
const helperDir = "PGEMBED_TEST_HELPER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		os.Exit(help(dir))
	}
	goleak.VerifyTestMain(m)
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
