// Package rpctest has Arkiv's own libraries read, as they are published, from a store that
// package rpc serves. Tests of an engine give it their stores.
package rpctest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/node/rpc"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

var everySDK = flag.Bool("varve.sdk", false, "have every library of Arkiv's read from both layouts of nodes, also in tests of an engine that try one")

//go:embed all:sdk
var sdkFiles embed.FS

// library is a library of Arkiv's, as its language installs it.
type library struct {
	name    string
	program string   // that runs scripts
	ending  string   // of a script's name
	files   []string // that say what is installed
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

// Command returns a command that runs a script with one of the libraries, "javascript" or
// "python". It skips the test where that cannot be had.
func Command(ctx context.Context, t testing.TB, name, script string, args ...string) *exec.Cmd {
	t.Helper()
	for i := range libraries {
		if l := &libraries[i]; l.name == name {
			return l.command(ctx, t, script, args...)
		}
	}
	require.Fail(t, "no library "+name)
	return nil
}

func (l *library) command(ctx context.Context, t testing.TB, script string, args ...string) *exec.Cmd {
	t.Helper()
	installed, beside := l.installed(t), t.TempDir()
	path := filepath.Join(beside, "script"+l.ending)
	require.NoError(t, os.WriteFile(path, []byte(script), 0o644))
	c := exec.CommandContext(ctx, l.program, append([]string{path}, args...)...)
	if l.name == "javascript" { // it looks for modules beside the script
		require.NoError(t, os.Symlink(filepath.Join(installed, "node_modules"), filepath.Join(beside, "node_modules")))
	} else {
		c.Env = append(os.Environ(), "PYTHONPATH="+installed, "PYTHONDONTWRITEBYTECODE=1")
	}
	return c
}

// Layouts are those that nodes use.
var Layouts = []string{"compact", "arkiv"}

// RunSDK has each library read everything that it can ask, over HTTP and WebSocket, and the
// events that it is told of, from each of the layouts that nodes use. NewURL returns the URL
// of a new store.
func RunSDK(t *testing.T, newURL func(testing.TB) string) { runSDK(t, newURL, libraries, Layouts) }

// TrySDK is RunSDK of one library and one layout, unless the flag -varve.sdk is given: what
// differs between engines is below what the libraries see.
func TrySDK(t *testing.T, newURL func(testing.TB) string) {
	if *everySDK {
		RunSDK(t, newURL)
		return
	}
	runSDK(t, newURL, libraries[:1], Layouts[:1])
}

func runSDK(t *testing.T, newURL func(testing.TB) string, libraries []library, layouts []string) {
	if testing.Short() {
		t.Skip("installs libraries of other languages")
	}
	for _, l := range libraries {
		for _, layout := range layouts {
			t.Run(l.name+"/"+layout, func(t *testing.T) { l.read(t, newURL(t), layout) })
		}
	}
}

// installed returns where the library is, which it installs once into the user's cache.
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
	// It is made beside, so that what is there is whole.
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

// read runs the script of a library, and shows it a block when it says that it watches.
func (l *library) read(t *testing.T, storeURL, layout string) {
	n := newNode(t, storeURL, layout)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run := l.command(ctx, t, string(file(t, "read"+l.ending)), n.url, "ws"+strings.TrimPrefix(n.url, "http"))
	var stderr bytes.Buffer
	run.Stderr = &stderr
	out, err := run.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	var told [][]string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch lines.Text() {
		case "subscribed":
			n.changes(t)
			continue
		case "large":
			n.large(t)
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
		if l.name == "javascript" {
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

var (
	alice = entity.Address{0: 0xa1, 19: 1}
	bob   = entity.Address{0: 0xb0, 19: 2}
)

func keyOf(n int) entity.Key { return entity.Key{0: 0xe0, 30: byte(n >> 8), 31: byte(n)} }

// create is an operation that makes entity number n, with attributes to ask for.
func create(n int) entity.Op {
	return entity.Op{
		Kind: entity.Create, Key: keyOf(n), BTL: 1000, Owner: alice, ContentType: "text/plain", Content: fmt.Appendf(nil, "payload %d", n),
		StringAttributes:  map[string]string{"type": "node", "name": fmt.Sprintf("n%04d", n)},
		NumericAttributes: map[string]uint64{"rank": uint64(n % 7), "n": uint64(n)},
	}
}

// node is a store that is served.
type node struct {
	ents *store.Entities
	url  string
}

// newNode makes a store of what the scripts ask for, and serves it until the test ends.
func newNode(t *testing.T, storeURL, layout string) *node {
	db, err := store.Open(t.Context(), storeURL, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	n := new(node)
	n.ents, err = db.Entities(t.Context(), &store.EntityOptions{Layout: layout})
	require.NoError(t, err)
	var early, late []entity.Op
	for i := range 450 {
		if i < 250 {
			early = append(early, create(i))
		} else {
			late = append(late, create(i))
		}
	}
	n.apply(t, 10, early...)
	n.apply(t, 20, late...)
	n.apply(t, 21, entity.Op{Kind: entity.Update, Key: keyOf(3), BTL: 1000, Owner: alice, Content: []byte("changed"), StringAttributes: map[string]string{"type": `say "hi" \d`}})

	handler, err := rpc.New(t.Context(), n.ents, rpc.Options{Poll: 5 * time.Millisecond})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	n.url = server.URL
	t.Cleanup(func() {
		require.NoError(t, handler.Close())
		server.Close()
	})
	return n
}

func (n *node) apply(t *testing.T, number uint64, ops ...entity.Op) {
	t.Helper()
	for i := range ops {
		ops[i].OpIndex = uint32(i)
	}
	_, err := n.ents.Apply(context.Background(), entity.Block{Number: number, Ops: ops})
	require.NoError(t, err)
}

// large makes 30 entities of 400 kB.
func (n *node) large(t *testing.T) {
	var ops []entity.Op
	for i := range 30 {
		op := create(600 + i)
		op.Content = bytes.Repeat([]byte{byte(i)}, 400_000)
		op.StringAttributes = map[string]string{"type": "large"}
		ops = append(ops, op)
	}
	n.apply(t, 25, ops...)
}

// changes does everything that there are events of.
func (n *node) changes(t *testing.T) {
	short, update := create(500), create(1)
	short.BTL, update.Kind, update.Content = 2, entity.Update, []byte("changed")
	n.apply(t, 22, short, update, entity.Op{Kind: entity.ExtendBTL, Key: keyOf(2), BTL: 50})
	n.apply(t, 23, entity.Op{Kind: entity.ChangeOwner, Key: keyOf(4), Owner: bob}, create(501))
	n.apply(t, 24, entity.Op{Kind: entity.Expire, Key: keyOf(500)}, entity.Op{Kind: entity.Delete, Key: keyOf(5)})
}
