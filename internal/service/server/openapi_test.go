package server_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/api"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
)

var examples = flag.Int("varve.examples", 0, "random requests of each operation that TestDescription makes beside those at the bounds, and sequences of requests")

// TestDescription: the server does as api/openapi.yaml says. A validator reads
// it, and schemathesis makes requests of it, good and bad ones. Each must be
// answered as the description says.
func TestDescription(t *testing.T) {
	if testing.Short() {
		t.Skip("installs programs in Python")
	}
	t.Parallel()
	installed := python(t)
	phases := "coverage"
	if *examples > 0 {
		phases = "coverage,fuzzing,stateful"
	}
	const token = "a token for the tests"
	w := run(t, service.Options{}, server.Options{Token: token})
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/schemathesis")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "openapi.yaml"), api.OpenAPI, 0o600))
	for _, args := range [][]string{
		{"-m", "openapi_spec_validator", "openapi.yaml"},
		{"-c", "from schemathesis.cli import schemathesis; schemathesis()", "run", "http://" + w.server.REST() + "/openapi.yaml",
			"--header=Authorization: Bearer " + token, "--seed=1", "--phases=" + phases, "--max-examples=" + strconv.Itoa(max(*examples, 1)), "--no-shrink", "--no-color", "--generation-database=none"},
	} {
		c := exec.Command("python3", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "PYTHONPATH="+installed, "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=127.0.0.1")
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.Logf("%s: %s of user time", args[1], c.ProcessState.UserTime())
	}
}

// python returns where the programs are, which are installed once into the user's cache.
func python(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/schemathesis/requirements.txt")
	require.NoError(t, err)
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	dir := filepath.Join(cache, "varve", fmt.Sprintf("schemathesis-%x", sha256.Sum256(text))[:30])
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	// It is made in another directory and renamed, so that it is whole.
	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	draft, err := os.MkdirTemp(filepath.Dir(dir), "schemathesis-")
	require.NoError(t, err)
	defer os.RemoveAll(draft)
	install := exec.Command("python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--only-binary=:all:", "--target", draft, "-r", "testdata/schemathesis/requirements.txt")
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("schemathesis cannot be had here: %v: %s", err, out)
	}
	if err := os.Rename(draft, dir); err != nil {
		require.DirExists(t, dir, "%v", err) // another test was first
	}
	return dir
}
