package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
)

// withSecrets are addresses with a password or token, right and wrong ones, of each kind that
// store/driver knows how to hide; and each part of these says hush.
var withSecrets = []string{
	"foo:user:hush@host/db", "postgres://user:hush@127.0.0.1:1/db?nonsense=1", "sqlite:missing/x.db?authToken=%hush",
	"user:hush@host/db", "host=127.0.0.1 port=1 user=u password='hush hush'", "postgres://user:hush/hush@127.0.0.1:1/db",
	"postgres://user:hush hush@127.0.0.1:1/db", "postgres://127.0.0.1:1/db?sslpassword=hush&sslpassword=hush",
	"libsql:https://user:hush@host", "libsql://user:hush hush@host", "libsql:https://127.0.0.1:1?authToken=hush",
}

// TestSecretsAreNotPrinted gives all such addresses to one command and some to every command
// that takes one, at every place. An interpreted escape shows two characters of what follows it.
func TestSecretsAreNotPrinted(t *testing.T) {
	besides(t)
	t.Chdir(t.TempDir())
	t.Setenv(clitest.AsCommand, "1") // for the processes that measure a server
	good := "sqlite:good.db"
	must(t, "import", "mendoza:scale=0.0001", good)
	for i, args := range [][]string{
		{"query", "URL", "*"}, {"import", "URL", "sqlite:x.db"},
		{"import", "--factor=2", good, "URL"},
		{"import", "mendoza:scale=0.0001", "URL"},
		{"check", "URL"}, {"check", good, "URL"}, {"check", "--repair", "URL"}, {"check", good, "--against", "URL"}, {"check", good, "--against=URL"},
		{"backup", "URL", "copy"}, {"restore", "URL", "copy"}, {"restore", ".", "URL"},
		{"query", "*", "URL"}, {"query", "URL"}, {"inspect", "URL"},
		{"events", "append", "URL"}, {"events", "read", "URL"}, {"events", "tail", "URL"}, {"events", "URL"}, {"URL"},
		{"serve", "URL", "--plaintext", "--listen=127.0.0.1:0", "--grpc="}, {"serve", good, "--key-file", "URL"},
		{"bench", "diff", "URL", "URL"}, {"report", "URL"}, {"answer", "--from=URL"}, {"compare", "URL"}, {"torture", "--dir=URL"},
	} {
		secrets := withSecrets
		if i > 0 { // the kinds of them
			secrets = withSecrets[:3]
		}
		for _, secret := range secrets {
			line := strings.Split(strings.ReplaceAll(strings.Join(args, "\n"), "URL", secret), "\n")
			out, errs, code := varve(t, line...)
			require.NotEqual(t, cli.ExitOK, code, line)
			require.NotRegexp(t, "hush|%hu", out+errs, line)
			require.NotEmpty(t, errs, line)
		}
	}
	stray, err := filepath.Glob("*hush*")
	require.NoError(t, err)
	require.Empty(t, stray)
}

// TestScaledStoreHidesItsSource: the origin that a store keeps has no parameters.
func TestScaledStoreHidesItsSource(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, "import", "mendoza:scale=0.0001", "sqlite:a.db")
	must(t, "import", "sqlite:a.db?readers=3", "sqlite:b.db", "--factor=2")
	out := must(t, "inspect", "sqlite:b.db", "--json")
	require.Contains(t, out, "scaled: sqlite:a.db, factor 2")
}
