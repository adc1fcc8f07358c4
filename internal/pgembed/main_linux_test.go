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

// helperCache is the variable that names its cache.
const helperCache = "PGEMBED_TEST_HELPER_CACHE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		os.Exit(help(dir))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(template.dir); err != nil {
			fmt.Println(err)
			code = 1
		}
		os.Exit(code)
	}))
}

func help(dir string) int {
	s, err := Start(context.Background(), Config{Dir: dir, CacheDir: os.Getenv(helperCache)})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started", s.PIDs()[0])
	select {}
}
