package memlimit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// The test program is also the process that has a limit.
const acts = "MEMLIMIT_TEST_ACTS"

func TestMain(m *testing.M) {
	if what := os.Getenv(acts); what != "" {
		if err := act(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	limit = 64 << 20
	above = 4 * limit
)

// seen is a process's description of itself.
type seen struct {
	Limit  int64
	How    string
	Killed int64
	Wider  int64 // after it was resized
	Group  string
}

func act(what string) (err error) {
	word, rest, _ := strings.Cut(what, " ")
	var s seen
	s.Limit, s.How, err = Own()
	if err != nil && what != "nothing" {
		return err
	}
	watched := Watch()
	switch word {
	case "allocate":
		held := make([]byte, above)
		for i := 0; i < len(held); i += os.Getpagesize() {
			held[i] = 1
		}
	case "read":
		f, err := os.Open(rest)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := io.Copy(struct{ io.Writer }{io.Discard}, f); err != nil {
			return err
		}
	case "start":
		return child(rest, os.Stdout).Run()
	}
	s.Killed = watched()
	if err := Resize(2 * limit); err != nil {
		return err
	}
	s.Wider, _, _ = Own() // as before
	group, err := os.ReadFile("/proc/self/cgroup")
	s.Group = string(group)
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(s))
}

func child(what string, out io.Writer) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), acts+"="+what)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	return cmd
}

func newGroup(t *testing.T) *Group {
	g, err := New(limit)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS) || errors.Is(err, errNoController) {
		t.Skip("control groups may not be made here: ", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, g.Close())
		require.NoDirExists(t, g.dir)
	})
	return g
}

// threads returns the groups of this process' threads.
func threads(t *testing.T) map[string]bool {
	files, err := filepath.Glob("/proc/self/task/*/cgroup")
	require.NoError(t, err)
	groups := map[string]bool{}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil { // a thread may have ended
			groups[string(text)] = true
		}
	}
	return groups
}

// What takes more than its limit is killed, and this process is not in its group.
func TestAboveTheLimit(t *testing.T) {
	g := newGroup(t)
	before := threads(t)
	require.Len(t, before, 1)
	cmd := child("allocate", io.Discard)
	require.NoError(t, g.Start(cmd))
	require.ErrorContains(t, cmd.Wait(), "killed")
	require.EqualValues(t, 1, g.Killed())
	require.Equal(t, before, threads(t))
}

// Pages of files count, and give way: a child that reads more than its limit
// goes on. Its child processes are in the same group.
func TestPageCacheCounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "long")
	f, err := os.Create(file)
	require.NoError(t, err)
	_, err = f.Write(make([]byte, above))
	require.NoError(t, errors.Join(err, f.Sync()))
	require.NoError(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	require.NoError(t, f.Close())
	for _, what := range []string{"read ", "start read "} {
		g := newGroup(t)
		var out bytes.Buffer
		cmd := child(what+file, &out)
		require.NoError(t, g.Start(cmd))
		require.NoError(t, cmd.Wait())
		var s seen
		require.NoError(t, json.Unmarshal(out.Bytes(), &s))
		require.EqualValues(t, limit, s.Limit, what)
		require.Equal(t, g.name, s.How, what)
		require.EqualValues(t, 2*limit, s.Wider, what)
		require.Zero(t, s.Killed, what)
		require.Contains(t, s.Group, filepath.Base(g.dir), what)
		require.Zero(t, g.Killed(), what)
	}
}

// TestStartInVersion2 needs no memory controller there.
func TestStartInVersion2(t *testing.T) {
	home := unified(t)
	dir, err := os.MkdirTemp(home, fmt.Sprintf("%s%d-", prefix, os.Getpid()))
	if err != nil {
		t.Skip("no group of version 2 may be made: ", err)
	}
	g := &Group{v2, dir, home}
	defer func() { require.NoError(t, g.Close()) }()
	var out bytes.Buffer
	cmd := child("nothing", &out)
	require.NoError(t, g.Start(cmd))
	require.NoError(t, cmd.Wait())
	require.Contains(t, out.String(), filepath.Base(dir))
}

func unified(t *testing.T) string {
	mounts, err := procfs.GetMounts()
	require.NoError(t, err)
	for _, m := range mounts {
		if m.FSType == "cgroup2" {
			return m.MountPoint
		}
	}
	t.Skip("cgroup v2 is not mounted")
	return ""
}

// The next run removes the group of a killed process.
func TestSweep(t *testing.T) {
	g := newGroup(t)
	dead := exec.Command("true")
	require.NoError(t, dead.Run())
	left := filepath.Join(filepath.Dir(g.dir), fmt.Sprintf("%s%d-1", prefix, dead.Process.Pid))
	require.NoError(t, os.Mkdir(left, 0o700))
	newGroup(t)
	require.NoDirExists(t, left)
	require.DirExists(t, g.dir, "of a process that lives")
}

// A process that has no limit says why.
func TestWithout(t *testing.T) {
	if own, _, err := Own(); err == nil {
		t.Skip("this process has a limit: ", own)
	}
	t.Setenv(Variable, "because")
	_, _, err := Own()
	require.EqualError(t, err, "because")
	require.NoError(t, Resize(1), "which changes nothing")
	require.Zero(t, Watch()())
}
