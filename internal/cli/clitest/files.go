package clitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
)

// RunFiles tests, on an engine with files, that no command removes or changes a
// file that it has not made: whatever fails, whichever command runs
// concurrently, and whatever a killed process has left.
func RunFiles(t *testing.T, engine string) {
	f := newFiles(t, engine)
	t.Run("foreign files", f.foreign)
	t.Run("log without database", f.logAlone)
	t.Run("foreign index", f.foreignIndex)
	t.Run("damaged log", f.damagedLog)
	t.Run("two at once", f.twoAtOnce)
	t.Run("killed", f.killed)
}

// files has the stores and files that the suite's commands read.
type files struct {
	engine string
	made   string // a store of 12 blocks and 8 events
	open   string // the files of that store after its process was killed
	backup string // a backup of it
	cut    string // the backup, damaged in the middle
	tar    string // its blocks
	events string // its events
}

// The numbers of blocks and events in the store.
const (
	fileBlocks = 12
	fileEvents = 8
)

func newFiles(t *testing.T, engine string) *files {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	f := &files{engine: engine, made: in("made"), open: in("open"), backup: in("backup"), cut: in("cut"), tar: in("blocks.tar"), events: in("events.jsonl")}
	db, err := store.Open(t.Context(), f.url(f.made), nil)
	require.NoError(t, err)
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	evs, err := db.Events(t.Context(), nil)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range uint64(fileBlocks) {
		content := make([]byte, 10_000) // that does not compress
		for i := range content {
			content[i] = byte(rng.Uint32())
		}
		_, err := ents.Apply(t.Context(), entity.Block{Number: n, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{byte(n)}, BTL: 100, Content: content}}})
		require.NoError(t, err)
	}
	for range fileEvents {
		_, err := evs.Append(t.Context(), []event.Event{{Type: "A"}}, nil)
		require.NoError(t, err)
	}
	require.NoError(t, os.Mkdir(f.open, 0o700))
	for name, text := range contents(t, dir) {
		if strings.HasPrefix(name, "made") && !strings.HasSuffix(name, "-shm") {
			require.NoError(t, os.WriteFile(filepath.Join(f.open, "x"+strings.TrimPrefix(name, "made")), []byte(text), 0o600))
		}
	}
	require.NoError(t, db.Close())
	Must(t, "backup", f.url(f.made), f.backup)
	Must(t, "import", f.url(f.made), f.tar)
	Must(t, "events", "export", f.url(f.made), f.events)
	whole, err := os.ReadFile(f.backup)
	require.NoError(t, err)
	whole[len(whole)*3/4] ^= 1
	require.NoError(t, os.WriteFile(f.cut, whole, 0o600))
	return f
}

func (f *files) url(path string) string { return f.engine + ":" + path }

// command is a command of the suite that creates x in a directory.
type command struct {
	name  string
	makes string                       // name of the store or file that it creates
	args  func(x string) []string      // of the path
	fails bool                         // it must fail and leave nothing
	whole func(t *testing.T, x string) // checks that the store or file is complete
}

func (f *files) commands() []command {
	restored := func(t *testing.T, x string) {
		require.Contains(t, Must(t, "check", f.url(x)), "digests recomputed")
		db, err := store.Open(t.Context(), f.url(x), &store.Options{ReadOnly: true})
		require.NoError(t, err)
		ents, err := db.Entities(t.Context(), nil)
		require.NoError(t, err)
		head, err := ents.Head(t.Context())
		require.NoError(t, errors.Join(err, db.Close()))
		require.EqualValues(t, fileBlocks-1, head.Number)
	}
	same := func(as string) func(t *testing.T, x string) {
		return func(t *testing.T, x string) {
			want, err := os.ReadFile(as)
			require.NoError(t, err)
			got, err := os.ReadFile(x)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got), "%s is not %s", x, as)
		}
	}
	sound := func(t *testing.T, x string) { Must(t, "check", f.url(x)) }
	return []command{
		{"restore", "x", func(x string) []string { return []string{"restore", f.backup, f.url(x)} }, false, restored},
		{"restore that fails before", "x", func(x string) []string { return []string{"restore", f.backup, f.url(x), "--at=99"} }, true, nil},
		{"restore that fails after", "x", func(x string) []string { return []string{"restore", f.cut, f.url(x)} }, true, nil},
		{"restore with a wrong option", "x", func(x string) []string { return []string{"restore", f.backup, f.url(x) + "?readers=-1"} }, true, nil},
		{"import", "x", func(x string) []string { return []string{"import", f.tar, f.url(x)} }, false, restored},
		{"import of too much", "x", func(x string) []string { return []string{"import", "dc:scale=0.01,load=10000000000", f.url(x)} }, true, nil},
		{"events import", "x", func(x string) []string { return []string{"events", "import", f.url(x), f.events} }, false, sound},
		{"backup", "x", func(x string) []string { return []string{"backup", f.url(f.made), x} }, false, same(f.backup)},
		{"backup of nothing", "x", func(x string) []string { return []string{"backup", f.url(f.made + "-no"), x} }, true, nil},
		{"export", "x", func(x string) []string { return []string{"events", "export", f.url(f.made), x} }, false, same(f.events)},
		{"tar", "x.tar", func(x string) []string { return []string{"import", f.url(f.made), x} }, false, same(f.tar)},
	}
}

// contents returns the contents of the files below a directory; directories
// have an empty text.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case errors.Is(err, fs.ErrNotExist), name == ".":
			return nil
		case err != nil:
			return err
		case d.IsDir():
			all[name] = "a directory"
			return nil
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		all[name] = string(text)
		return err
	}))
	return all
}

// unchanged fails unless all earlier files of a directory are unchanged, and
// returns the names of new files.
func unchanged(t *testing.T, dir string, before map[string]string, msg string) (more []string) {
	t.Helper()
	after := contents(t, dir)
	for name, text := range before {
		has, ok := after[name]
		require.True(t, ok, "%q is gone; %s", name, msg)
		require.True(t, text == has, "%q was changed from %.40q to %.40q; %s", name, text, has, msg)
	}
	for name := range after {
		if _, was := before[name]; !was {
			more = append(more, name)
		}
	}
	slices.Sort(more)
	return more
}

// foreign: the directory has user files with names that a store or temporary
// file could have.
func (f *files) foreign(t *testing.T) {
	for _, c := range f.commands() {
		for _, ends := range []string{".tmp/mine -durable .partial", ".wal", "-journal", "-lease", "-shm"} {
			t.Run(c.name+"/"+strings.ReplaceAll(ends, "/", " "), func(t *testing.T) {
				dir := t.TempDir()
				x := filepath.Join(dir, c.makes)
				for end := range strings.FieldsSeq(ends) {
					require.NoError(t, os.MkdirAll(filepath.Dir(x+end), 0o755))
					require.NoError(t, os.WriteFile(x+end, []byte("a user's own file"), 0o644))
				}
				f.runs(t, c, dir)
			})
		}
	}
}

// runs runs a command, which may fail, and checks that the directory is
// unchanged.
func (f *files) runs(t *testing.T, c command, dir string) {
	t.Helper()
	before, x := contents(t, dir), filepath.Join(dir, c.makes)
	_, errs, code := Run(t, c.args(x)...)
	more := unchanged(t, dir, before, errs)
	switch {
	case code != cli.ExitOK && c.name != "import": // it leaves a part, which it resumes
		require.Empty(t, more, "it has failed: %s", errs)
	case code != cli.ExitOK:
	case c.fails:
		require.Fail(t, "it should have failed")
	default:
		require.Contains(t, more, c.makes)
		c.whole(t, x)
	}
}

// left creates a directory with copies of the files that a killed process left.
func (f *files) left(t *testing.T) (dir, x string) {
	dir = t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(f.open)))
	return dir, filepath.Join(dir, "x")
}

// log returns the name of the log in the left files.
func (f *files) log(t *testing.T, dir string) string {
	for _, end := range []string{"x-wal", "x.wal"} {
		if st, err := os.Stat(filepath.Join(dir, end)); err == nil && st.Size() > 0 {
			return filepath.Join(dir, end)
		}
	}
	require.Fail(t, "a process that was killed leaves a log")
	return ""
}

// writers are commands that write to a store, or open one to do so.
func (f *files) writers() []command {
	return append(slices.DeleteFunc(f.commands(), func(c command) bool { return !strings.Contains(strings.Join(c.args("x"), " "), f.url("x")) }),
		command{name: "events append", args: func(x string) []string { return []string{"events", "append", f.url(x), f.events} }},
		command{name: "events checkpoint", args: func(x string) []string { return []string{"events", "checkpoint", "set", f.url(x), "c", "1"} }},
		command{name: "serve", args: func(x string) []string { return serving(f.url(x)) }},
		command{name: "check", args: func(x string) []string { return []string{"check", f.url(x)} }},
		command{name: "repair", args: func(x string) []string { return []string{"check", "--repair", f.url(x)} }},
	)
}

// logAlone: the database file is lost and only the log of a killed process is
// left. It may be all that exists of the database, so commands must not touch
// it.
func (f *files) logAlone(t *testing.T) {
	for _, c := range f.writers() {
		t.Run(c.name, func(t *testing.T) {
			dir, x := f.left(t)
			require.NoError(t, os.Remove(x))
			f.refused(t, c, dir, x)
		})
	}
}

// foreignIndex: the store was closed, and a user's file has the name of
// SQLite's WAL index. Engines without such an index ignore it.
func (f *files) foreignIndex(t *testing.T) {
	for _, c := range f.writers() {
		if c.name == "serve" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			x := filepath.Join(dir, "x")
			text, err := os.ReadFile(f.made)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(x, text, 0o600))
			require.NoError(t, os.WriteFile(x+"-shm", []byte("a user's own file"), 0o644))
			before := contents(t, dir)
			delete(before, "x")
			_, errs, _ := Run(t, c.args(x)...)
			unchanged(t, dir, before, errs)
		})
	}
}

// damagedLog: a part of a killed process's log is unreadable.
func (f *files) damagedLog(t *testing.T) {
	for name, damage := range map[string]func(log []byte) []byte{
		"first": func(log []byte) []byte { log[100] ^= 0xff; return log }, // byte of a frame or entry
		"end":   func(log []byte) []byte { return log[:len(log)*3/4] },
	} {
		for _, c := range f.writers() {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				dir, x := f.left(t)
				log := f.log(t, dir)
				text, err := os.ReadFile(log)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(log, damage(text), 0o600))
				f.refused(t, c, dir, x)
			})
		}
	}
}

// refused: a command must fail and change nothing. Only the file of kept
// numbers may change.
func (f *files) refused(t *testing.T, c command, dir, x string) {
	t.Helper()
	before := contents(t, dir)
	delete(before, "x-durable")
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var out, errs bytes.Buffer
	code := cli.Run(ctx, c.args(x), &out, &errs)
	more := unchanged(t, dir, before, errs.String())
	more = slices.DeleteFunc(more, func(name string) bool { return name == "x-shm" || name == "x-durable" })
	require.Empty(t, more, errs.String())
	require.NotEqual(t, cli.ExitOK, code, "%s\n%s", &out, &errs)
	require.NotEqual(t, cli.ExitInterrupted, code, "%s\n%s", &out, &errs)
}

func serving(url string) []string {
	return []string{"serve", url, "--listen=127.0.0.1:0", "--grpc=off", "--plaintext"}
}

// process is a command running in a separate process.
type process struct {
	cmd  *exec.Cmd
	errs Output
}

func start(t *testing.T, args ...string) *process {
	p := &process{cmd: exec.Command(os.Args[0], args...)}
	p.cmd.Env = append(os.Environ(), AsCommand+"=1")
	p.cmd.Stderr = &p.errs
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// wait waits for the process and returns its exit code.
func (p *process) wait() int {
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// twoAtOnce: of two concurrent commands, the one that reports success has made
// the store or file.
func (f *files) twoAtOnce(t *testing.T) {
	for _, c := range f.commands() {
		if c.fails {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			for range 3 {
				dir := t.TempDir()
				x := filepath.Join(dir, c.makes)
				one, two := start(t, c.args(x)...), start(t, c.args(x)...)
				first, second := one.wait(), two.wait()
				said := fmt.Sprintf("%d: %s\n%d: %s", first, &one.errs, second, &two.errs)
				require.True(t, first == cli.ExitOK || second == cli.ExitOK, said)
				if c.name == "restore" || c.name == "backup" {
					require.NotEqual(t, first, second, said)
				}
				require.FileExists(t, x, said)
				require.Equal(t, []string{c.makes}, unchanged(t, dir, nil, said), said)
				c.whole(t, x)
			}
		})
	}
	t.Run("restore and serve", func(t *testing.T) {
		for range 3 {
			dir := t.TempDir()
			x := filepath.Join(dir, "x")
			serves := start(t, serving(f.url(x))...)
			time.Sleep(30 * time.Millisecond)
			restores := start(t, "restore", f.backup, f.url(x))
			code := restores.wait()
			time.Sleep(200 * time.Millisecond)
			require.FileExists(t, x, "%s\n%s", &serves.errs, &restores.errs)
			require.NoError(t, serves.cmd.Process.Signal(syscall.SIGTERM))
			serves.wait()
			require.NotContains(t, serves.errs.String(), "is not the file that is open")
			if code == cli.ExitOK {
				Must(t, "check", f.url(x))
			}
		}
	})
}

// killed: the files of a killed command have temporary names, and the next
// command removes them.
func (f *files) killed(t *testing.T) {
	for _, c := range f.commands() {
		if c.fails {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			x := filepath.Join(dir, c.makes)
			require.NoError(t, os.WriteFile(x+".partial", []byte("a user's own file"), 0o644))
			before := contents(t, dir)
			for range 2 {
				p := start(t, c.args(x)...)
				for begun := time.Now(); len(unchanged(t, dir, before, "")) == 0 && time.Since(begun) < 5*time.Second && p.cmd.ProcessState == nil; {
					time.Sleep(time.Millisecond)
				}
				_ = p.cmd.Process.Kill()
				p.wait()
				unchanged(t, dir, before, p.errs.String())
			}
			if c.name == "restore" || c.name == "backup" || c.name == "export" || c.name == "tar" {
				_ = os.Remove(x) // one that was ready before it was killed
			}
			Must(t, c.args(x)...)
			require.Equal(t, []string{c.makes}, unchanged(t, dir, before, ""))
			c.whole(t, x)
		})
	}
}
