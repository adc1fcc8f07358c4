// Package rpctest runs scripts with the published versions of Arkiv's SDKs.
package rpctest

import (
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed all:sdk
var sdkFiles embed.FS

// library is one of Arkiv's SDKs and the way to install it.
type library struct {
	name    string
	program string   // that runs scripts
	ending  string   // of a script's name
	files   []string // that pin the installed packages
	install []string
}

var libraries = []library{
	{
		name: "javascript", program: "node", ending: ".mjs", files: []string{"package.json", "package-lock.json", ".npmrc"},
		install: []string{"npm", "ci"},
	},
	{
		name: "python", program: "python3", ending: ".py", files: []string{"requirements.txt"},
		install: []string{"python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--target", ".", "-r", "requirements.txt"},
	},
}

// Command returns a command that runs a script with one of the libraries,
// "javascript" or "python". It skips the test where the library cannot be
// installed.
func Command(ctx context.Context, t testing.TB, name, script string, args ...string) *exec.Cmd {
	t.Helper()
	l := &libraries[slices.IndexFunc(libraries, func(l library) bool { return l.name == name })]
	installed, beside := l.installed(t), t.TempDir()
	path := filepath.Join(beside, "script"+l.ending)
	require.NoError(t, os.WriteFile(path, []byte(script), 0o644))
	c := exec.CommandContext(ctx, l.program, append([]string{path}, args...)...)
	if l.name == "javascript" { // it looks for modules in the script's directory
		require.NoError(t, os.Symlink(filepath.Join(installed, "node_modules"), filepath.Join(beside, "node_modules")))
	} else {
		c.Env = append(os.Environ(), "PYTHONPATH="+installed, "PYTHONDONTWRITEBYTECODE=1")
	}
	return c
}

// installed returns the library's directory. It installs the library once, into
// the user's cache.
func (l *library) installed(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath(l.install[0]); err != nil {
		t.Skipf("%s is not installed here: %v", l.install[0], err)
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	sum := sha256.New()
	for _, name := range l.files {
		text := file(t, name)
		fmt.Fprintf(sum, "%s %d ", name, len(text))
		sum.Write(text)
	}
	dir := filepath.Join(cache, "varve", fmt.Sprintf("sdk-%s-%x", l.name, sum.Sum(nil)[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	// Install into another directory and rename it, so that the final directory
	// is always complete.
	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	draft, err := os.MkdirTemp(filepath.Dir(dir), "sdk-")
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(draft)) }()
	for _, name := range l.files {
		require.NoError(t, os.WriteFile(filepath.Join(draft, name), file(t, name), 0o644))
	}
	install := exec.Command(l.install[0], l.install[1:]...)
	install.Dir = draft
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("%s cannot be had here: %v: %s", l.name, err, out)
	}
	if err := os.Rename(draft, dir); err != nil {
		require.DirExists(t, dir, "%v", err) // another test was first
	}
	return dir
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	text, err := sdkFiles.ReadFile(path.Join("sdk", name))
	require.NoError(t, err)
	return text
}
