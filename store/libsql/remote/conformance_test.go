package remote

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/varvedb/varve/store/storetest"
)

var everyLayout = flag.Bool("every-layout", false, "run the conformance suites on every layout, and 100 blocks that are taken over, which takes minutes")

func TestMain(m *testing.M) {
	code := m.Run()
	stopSqld()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// TestConformance takes one of two layouts through each suite, and both through random
// histories: their SQL is that of SQLite, on which every layout is tried.
func TestConformance(t *testing.T) {
	h := storetest.Harness{NewURL: newURL, Server: true, Checks: 5}
	if *everyLayout {
		storetest.Run(t, h)
		return
	}
	suites := map[string]map[string]func(*testing.T, storetest.Harness){
		"arkiv": {
			"driver": storetest.RunDriver, "query": storetest.RunQuery, "differential": storetest.RunDifferential,
		},
		"compact": {
			"entities": storetest.RunEntities, "differential": storetest.RunDifferential,
			"questions": storetest.RunQuestions, "events": storetest.RunEvents, "check": storetest.RunCheck, "beside": storetest.RunBeside,
			"arkiv": storetest.RunArkiv,
		},
	}
	for layout, list := range suites {
		h.Layouts = []string{layout}
		for name, run := range list {
			t.Run(name+"/"+layout, func(t *testing.T) { run(t, h) })
		}
	}
}

// TestCompact is the layout's own suite, for what its merges write to a server.
func TestCompact(t *testing.T) {
	if !*everyLayout {
		t.Skip("it takes minutes: run it with -every-layout")
	}
	h := storetest.Harness{NewURL: newURL, Server: true, Checks: 5}
	storetest.RunCompact(t, h)
}
