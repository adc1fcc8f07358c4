package postgres

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store/storetest"
)

// citusURL is the variable that names the coordinator of a Citus cluster, of which the
// user may make schemas: postgres://user@host/db.
const citusURL = "POSTGRES_TEST_CITUS_URL"

var citusSchemas atomic.Int64

// newCitusURL returns the URL of a new schema whose tables will be spread.
func newCitusURL(t testing.TB) string {
	t.Helper()
	base := os.Getenv(citusURL)
	if base == "" {
		t.Skipf("needs a Citus coordinator's URL in %s", citusURL)
	}
	name := fmt.Sprintf("citus%d_%d", os.Getpid(), citusSchemas.Add(1))
	t.Cleanup(func() { pgtest.Exec(t, base, "DROP SCHEMA IF EXISTS "+name+" CASCADE") })
	return base + "?citus=true&schema=" + name
}

// TestCitusConformance runs the suites on a real cluster.
func TestCitusConformance(t *testing.T) {
	newCitusURL(t)
	storetest.Run(t, storetest.Harness{NewURL: newCitusURL, Server: true, Checks: 2, Layouts: []string{"arkiv", "compact"}})
}
