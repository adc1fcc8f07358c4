package rpc

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
)

const sdkDir = "testdata/sdk"

// sdk is a library of Arkiv's, as its language installs it.
type sdk struct {
	name    string
	program string
	files   []string // that say what is installed
	install func(dir string) *exec.Cmd
	run     func(t *testing.T, dir string, args ...string) *exec.Cmd
}

var sdks = []sdk{
	{
		name: "javascript", program: "npm", files: []string{"package.json", "package-lock.json", ".npmrc"},
		install: func(string) *exec.Cmd { return exec.Command("npm", "ci") },
		run: func(t *testing.T, dir string, args ...string) *exec.Cmd {
			beside := t.TempDir() // node looks for modules beside the program
			text, err := os.ReadFile(filepath.Join(sdkDir, "read.mjs"))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(beside, "read.mjs"), text, 0o644))
			require.NoError(t, os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(beside, "node_modules")))
			return exec.Command("node", append([]string{filepath.Join(beside, "read.mjs")}, args...)...)
		},
	},
	{
		name: "python", program: "python3", files: []string{"requirements.txt"},
		install: func(dir string) *exec.Cmd {
			return exec.Command("python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--target", dir, "-r", "requirements.txt")
		},
		run: func(_ *testing.T, dir string, args ...string) *exec.Cmd {
			c := exec.Command("python3", append([]string{filepath.Join(sdkDir, "read.py")}, args...)...)
			c.Env = append(os.Environ(), "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1")
			return c
		},
	},
}

// TestSDK reads by means of Arkiv's own libraries, as they are published: everything that
// they can ask, over HTTP and WebSocket, and the events that they tell of.
func TestSDK(t *testing.T) {
	if testing.Short() {
		t.Skip("installs libraries of other languages")
	}
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			dir := s.installed(t)
			for _, layout := range layouts {
				t.Run(layout, func(t *testing.T) { s.read(t, dir, layout) })
			}
		})
	}
}

// installed returns where the library is, which it installs once into the user's cache.
func (s *sdk) installed(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath(s.program); err != nil {
		t.Skipf("%s is not installed here: %v", s.program, err)
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	sum := sha256.New()
	for _, name := range s.files {
		text, err := os.ReadFile(filepath.Join(sdkDir, name))
		require.NoError(t, err)
		fmt.Fprintf(sum, "%s %d ", name, len(text))
		sum.Write(text)
	}
	dir := filepath.Join(cache, "varve", fmt.Sprintf("sdk-%s-%x", s.name, sum.Sum(nil)[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	// It is made beside, so that what is there is whole.
	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	draft, err := os.MkdirTemp(filepath.Dir(dir), "sdk-")
	require.NoError(t, err)
	defer os.RemoveAll(draft)
	for _, name := range s.files {
		text, err := os.ReadFile(filepath.Join(sdkDir, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(draft, name), text, 0o644))
	}
	install := s.install(draft)
	install.Dir = draft
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("%s cannot be had here: %v: %s", s.name, err, out)
	}
	if err := os.Rename(draft, dir); err != nil {
		require.DirExists(t, dir, "%v", err) // another test was first
	}
	return dir
}

// read runs the script of a library, and shows it a block when it says that it watches.
func (s *sdk) read(t *testing.T, dir, layout string) {
	n := newStore(t, layout)
	var early, late []store.Op
	for i := range 450 {
		if i < 250 {
			early = append(early, create(i))
		} else {
			late = append(late, create(i))
		}
	}
	n.apply(t, 10, early...)
	n.apply(t, 20, late...)
	n.apply(t, 21, store.Op{Kind: store.Update, Key: keyOf(3), BTL: 1000, Owner: alice, Content: []byte("changed"), StringAttributes: map[string]string{"type": `say "hi" \d`}})
	n.serve(t, Options{})

	run := s.run(t, dir, n.url, "ws"+strings.TrimPrefix(n.url, "http"))
	var stderr bytes.Buffer
	run.Stderr = &stderr
	out, err := run.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	timer := time.AfterFunc(2*time.Minute, func() { _ = run.Process.Kill() })
	defer timer.Stop()
	var told [][]string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "subscribed" {
			n.changes(t)
			continue
		}
		var list []string
		require.NoError(t, json.Unmarshal(lines.Bytes(), &list), "%s", lines.Text())
		told = append(told, list)
	}
	require.NoError(t, run.Wait(), "%s", stderr.String())
	require.NotEmpty(t, told)
	a, b := alice.String(), bob.String()
	for _, list := range told {
		if s.name == "javascript" {
			// Of other owners it does not tell, though it knows the event.
			require.Equal(t, []string{
				"created " + a + " 24", "updated 1010 1022", "extended 1010 72", "created " + a + " 1023", "expired " + a, "deleted " + a,
			}, list)
		} else {
			require.Equal(t, []string{
				"created " + a + " 1023", "created " + a + " 24", "deleted " + a, "extended " + a + " 72", "owner changed " + b, "updated " + a + " 1022",
			}, list)
		}
	}
}

// changes does everything that there are events of.
func (n *node) changes(t *testing.T) {
	short, update := create(500), create(1)
	short.BTL, update.Kind, update.Content = 2, store.Update, []byte("changed")
	n.apply(t, 22, short, update, store.Op{Kind: store.ExtendBTL, Key: keyOf(2), BTL: 50})
	n.apply(t, 23, store.Op{Kind: store.ChangeOwner, Key: keyOf(4), Owner: bob}, create(501))
	n.apply(t, 24, store.Op{Kind: store.Expire, Key: keyOf(500)}, store.Op{Kind: store.Delete, Key: keyOf(5)})
}
