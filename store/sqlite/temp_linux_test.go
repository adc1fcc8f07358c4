package sqlite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// TestNoTemporaryDirectory: SQLite's "disk I/O error" says which directory is missing. The
// test runs again where every one of them is read-only, as in a container's root.
func TestNoTemporaryDirectory(t *testing.T) {
	const inside = "VARVE_TEST_NO_TEMP"
	if os.Getenv(inside) == "" {
		dir, err := os.MkdirTemp("/dev/shm", "varve-temp-")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		const script = `for d in /tmp /var/tmp /usr/tmp; do test ! -d $d || mount -t tmpfs -o ro,size=64k tmpfs $d || exit 99; done
unset TMPDIR SQLITE_TMPDIR; cd /tmp; exec "$0" -test.run '^TestNoTemporaryDirectory$' -test.v`
		self := filepath.Join(dir, "test") // the binary may be in /tmp
		binary, err := os.ReadFile("/proc/self/exe")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(self, binary, 0o700))
		cmd := exec.Command("unshare", "--mount", "sh", "-c", script, self)
		cmd.Env = append(os.Environ(), inside+"="+dir)
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState; code == nil || code.ExitCode() == 99 || os.Geteuid() != 0 {
			t.Skipf("no directory can be made read-only here: %s", out)
		}
		require.NoError(t, err, "%s", out)
		return
	}
	db, err := store.Open(t.Context(), "sqlite://"+filepath.Join(os.Getenv(inside), "x.db"), &store.Options{Memory: 1 << 20})
	require.NoError(t, err)
	defer db.Close()
	tx, err := db.Engine().Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback()
	err = driver.QueryRows(t.Context(), tx, "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 300000) SELECT hex(randomblob(40)) AS h FROM c ORDER BY h",
		nil, func(driver.Rows) error { return nil })
	require.ErrorContains(t, err, "disk I/O error")
	require.ErrorContains(t, err, "SQLITE_TMPDIR")
	require.ErrorContains(t, err, "/var/tmp")
}
