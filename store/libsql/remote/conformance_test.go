package remote

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/varvedb/varve/internal/temptest"
	"github.com/varvedb/varve/store/storetest"
)

var everyLayout = flag.Bool("every-layout", false, "run the conformance suites on every layout, and 100 blocks that are taken over, which takes minutes")

func TestMain(m *testing.M) {
	// The server keeps its files in memory, because no test depends on its disk.
	code := temptest.InMemory(func() int {
		defer stopSqld()
		return m.Run()
	}).Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// TestConformance tries few layouts: their SQL is that of SQLite, on which every one is tried.
func TestConformance(t *testing.T) {
	h := storetest.Harness{NewURL: newURL, Server: true, Checks: 4}
	if !*everyLayout {
		h.Layouts = []string{"arkiv", "compact"}
	}
	storetest.Run(t, h)
}
