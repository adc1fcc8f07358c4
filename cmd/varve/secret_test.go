package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
)

// withSecrets are addresses with a password or token, right and wrong ones; and each
// part of these says hush.
var withSecrets = []string{
	"foo://user:hush@host/db",
	"foo:user:hush@host/db",
	"user:hush@host/db",
	"us.er:hush@host/db",
	"//user:hush@host/db",
	"host=127.0.0.1 port=1 user=u password=hush",
	"host=127.0.0.1 port=1 user=u password='hush hush'",
	"postgres://user:hush@127.0.0.1:1/db",
	"postgres://user:hush@127.0.0.1:1/db?nonsense=1",
	"postgres://user:hush@127.0.0.1:1/db?host=127.0.0.1",
	"postgres://user:hush@/db",
	"postgres://user:hush@?sslmode=disable",
	"postgres://user:hush/hush@127.0.0.1:1/db",
	"postgres://user:hush#hush@127.0.0.1:1/db",
	"postgres://user:hush?hush@127.0.0.1:1/db",
	"postgres://user:hush@hush@127.0.0.1:1/db",
	"postgres://user:hush hush@127.0.0.1:1/db",
	"postgres://user:%hush@127.0.0.1:1/db",
	"postgres://127.0.0.1:1/db?password=hush",
	"postgres://127.0.0.1:1/db?sslpassword=hush&sslpassword=hush",
	"sqlite://user:hush@host/x.db",
	"sqlite:missing/x.db?authToken=hush",
	"sqlite:missing/x.db?authToken=%hush",
	"libsql:https://user:hush@host",
	"libsql://user:hush@host",
	"libsql:https://127.0.0.1:1?authToken=hush",
	"libsql://user:hush hush@host",
	"libsql:https://user:hush/hush@host",
}

// TestSecretsAreNotPrinted gives all such addresses to one command and some to every command
// that takes one, at every place. An interpreted escape shows two characters of what follows it.
func TestSecretsAreNotPrinted(t *testing.T) {
	besides(t)
	t.Chdir(t.TempDir())
	t.Setenv(clitest.AsCommand, "1") // for the processes that measure a server
	good := "sqlite:good.db"
	must(t, "seed", "mendoza", good, "--scale=0.0001")
	for i, args := range [][]string{
		{"query", "URL", "*"}, {"import", "URL", "sqlite:x.db"},
		{"seed", "mendoza", "URL", "--scale=0.0001"},
		{"scale", "URL", "sqlite:x.db"}, {"scale", good, "URL"},
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
			secrets = []string{"foo:user:hush@host/db", "postgres://user:hush@127.0.0.1:1/db?nonsense=1", "sqlite:missing/x.db?authToken=%hush"}
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
	must(t, "seed", "mendoza", "sqlite:a.db", "--scale=0.0001")
	must(t, "scale", "sqlite:a.db?readers=2", "sqlite:b.db")
	out := must(t, "inspect", "sqlite:b.db", "--json")
	require.Contains(t, out, "scaled: sqlite:a.db, factor 2")
}
