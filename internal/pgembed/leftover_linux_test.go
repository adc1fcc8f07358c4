package pgembed

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

func TestSecondStartIsLocked(t *testing.T) {
	t.Parallel()
	dir := madeDir(t)
	s := start(t, Config{Dir: dir})
	_, err := Start(t.Context(), Config{Dir: dir})
	require.ErrorIs(t, err, driver.ErrLocked)
	require.Equal(t, "1", query(t, s, "SELECT 1"), "the first one is not disturbed")
}

// helper returns the command of a process that starts the server of a directory.
func helper(dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperDir+"="+dir)
	return cmd
}

// startElsewhere starts a server in another process and returns that process and the server's process number.
func startElsewhere(t *testing.T, dir string) (parent *exec.Cmd, server int) {
	t.Helper()
	return startHelper(t, helper(dir))
}

func startHelper(t *testing.T, cmd *exec.Cmd) (parent *exec.Cmd, server int) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, line)
	_, err = fmt.Sscanf(line, "started %d", &server)
	require.NoError(t, err, line)
	return cmd, server
}

func TestKilledParentLeavesNoServer(t *testing.T) {
	t.Parallel()
	dir := madeDir(t)
	data := filepath.Join(dir, "data")
	parent, server := startElsewhere(t, dir)
	require.Contains(t, workersIn(data), server)
	_, err := Start(t.Context(), Config{Dir: dir})
	require.ErrorIs(t, err, driver.ErrLocked)

	killParent(t, parent, data)

	s := start(t, Config{Dir: dir})
	require.Equal(t, "1", query(t, s, "SELECT 1"))
}

// killParent kills a process that started a server, and waits until the server has gone too.
func killParent(t *testing.T, parent *exec.Cmd, data string) {
	t.Helper()
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.True(t, waitFor(quitGrace, func() bool { return len(workersIn(data)) == 0 }), "the server lives on")
}

// TestStartRightAfterKill starts while the killed parent's server is ending.
func TestStartRightAfterKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 100)) // with a socket directory elsewhere
	initDir(t, dir)
	t.Setenv("TMPDIR", t.TempDir())
	for range 2 {
		parent, _ := startElsewhere(t, dir)
		old, err := os.Readlink(filepath.Join(dir, "socket"))
		require.NoError(t, err)
		require.NoError(t, parent.Process.Kill())
		require.Error(t, parent.Wait())
		s, err := Start(t.Context(), Config{Dir: dir})
		require.NoError(t, err)
		require.NoDirExists(t, old)
		require.Equal(t, "1", query(t, s, "SELECT 1"))
		require.NoError(t, s.Stop(t.Context()))
		requireNothingLeft(t, dir)
	}
}

// TestRemoveSockets: nothing of a killed server is left elsewhere.
func TestRemoveSockets(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, strings.Repeat("x", 100))
	initDir(t, dir)
	t.Setenv("TMPDIR", t.TempDir())
	parent, _ := startElsewhere(t, dir)
	old, err := os.Readlink(filepath.Join(dir, "socket"))
	require.NoError(t, err)
	killParent(t, parent, filepath.Join(dir, "data"))
	require.DirExists(t, old)
	require.NoError(t, RemoveSockets(root))
	require.NoDirExists(t, old)
	require.NoError(t, RemoveSockets(root))
}

// TestKilledWhileMaking kills a process at several moments while it makes a data directory.
func TestKilledWhileMaking(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, after := range []time.Duration{20, 100, 200, 400, 700, 800} {
		cmd := helper(dir)
		require.NoError(t, cmd.Start())
		time.Sleep(after * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
		if after%200 != 0 {
			continue // several in a row
		}
		s, err := Start(t.Context(), Config{Dir: dir})
		require.NoError(t, err)
		require.Equal(t, "1", query(t, s, "SELECT 1"))
		require.NoError(t, s.Stop(t.Context()))
		requireNothingLeft(t, dir)
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "data")))
	}
}

// TestLiveLeftover starts while an abandoned server is running: one that has lost its parent but not its life.
func TestLiveLeftover(t *testing.T) {
	t.Parallel()
	dir := madeDir(t)
	old, err := Start(t.Context(), Config{Dir: dir})
	require.NoError(t, err)
	query(t, old, "CREATE TABLE t (n bigint); INSERT INTO t VALUES (42)")
	require.NoError(t, old.lock.Close())

	s := start(t, Config{Dir: dir})
	<-old.proc.done
	require.NoError(t, old.proc.err, "it was shut down in order")
	require.Equal(t, "42", query(t, s, "SELECT n FROM t"))
}

// TestLeftoverBackends starts while only the children of a killed server run.
func TestLeftoverBackends(t *testing.T) {
	t.Parallel()
	dir := madeDir(t)
	old, err := Start(t.Context(), Config{Dir: dir})
	require.NoError(t, err)
	require.NoError(t, old.proc.cmd.Process.Kill())
	<-old.proc.done
	require.NoError(t, old.lock.Close())
	start(t, Config{Dir: dir})
}

// TestForeignServer finds a server that another program started on the data.
func TestForeignServer(t *testing.T) {
	t.Parallel()
	dir := madeDir(t)
	data := filepath.Join(dir, "data")
	bin, err := findBinaries(t.Context(), "", mustIdentify(t, dir))
	require.NoError(t, err)
	cmd := mustIdentify(t, dir).command(filepath.Join(bin, "postgres"), "-D", data, "-c", "listen_addresses=",
		"-c", "unix_socket_directories="+t.TempDir())
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	foreign, err := launch(cmd)
	require.NoError(t, err)
	require.True(t, waitFor(quitGrace, func() bool { return readyAs(data, foreign.pid()) }))

	_, err = Start(t.Context(), Config{Dir: dir})
	require.ErrorIs(t, err, driver.ErrLocked)
	require.ErrorContains(t, err, strconv.Itoa(foreign.pid()))
	require.True(t, readyAs(data, foreign.pid()), "it is not disturbed")

	require.NoError(t, foreign.stop(t.Context()))
	start(t, Config{Dir: dir})
}

func readyAs(data string, pid int) bool {
	there, ready := readPIDFile(data)
	return ready && there == pid
}

func mustIdentify(t *testing.T, dir string) *identity {
	t.Helper()
	id, err := identify(dir)
	require.NoError(t, err)
	return id
}

// TestStalePIDFile finds lock files that name a process that is not a server: one
// that has ended, and one that got the number since.
func TestStalePIDFile(t *testing.T) {
	t.Parallel()
	dir := madeDir(t)
	ended := exec.Command("/bin/true")
	require.NoError(t, ended.Run())
	for name, pid := range map[string]int{"ended": ended.Process.Pid, "other": os.Getppid(), "self": os.Getpid()} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("%d\n%s\n1700000000\n5432\n/tmp\n\n  1234567  12345\nready   \n", pid, filepath.Join(dir, "data"))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "postmaster.pid"), []byte(text), 0o600))
			s := start(t, Config{Dir: dir})
			require.Equal(t, "1", query(t, s, "SELECT 1"))
		})
	}
}

// TestInterruptedInit finds the remains of a new data directory after a kill.
func TestInterruptedInit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	part := filepath.Join(dir, "data.part")
	require.NoError(t, os.Mkdir(part, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(part, "PG_VERSION"), []byte("18\n"), 0o600))
	start(t, Config{Dir: dir})
	require.NoDirExists(t, part)
}

// nameless is a user that the system has no name for.
const nameless = 54321

// dirOf makes a directory that belongs to a user, next to a cache that every
// user can read.
func dirOf(t *testing.T, uid int) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run something as another user")
	}
	base, err := os.MkdirTemp("/tmp", "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	require.NoError(t, os.Chmod(base, 0o755))
	dir = filepath.Join(base, "dir")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Chown(dir, uid, uid))
	root, err := install(t.Context())
	require.NoError(t, err)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(base, "cache"))
	require.NoError(t, os.CopyFS(filepath.Join(base, "cache", "varve", "postgres", filepath.Base(root)), os.DirFS(root)))
	return dir
}

// TestOtherOwner runs the server as the user who owns the directory.
func TestOtherOwner(t *testing.T) {
	for _, uid := range []int{65534, nameless} {
		t.Run(strconv.Itoa(uid), func(t *testing.T) { testOtherOwner(t, uid) })
	}
}

func testOtherOwner(t *testing.T, uid int) {
	dir := dirOf(t, uid)
	s := start(t, Config{Dir: dir})
	require.Equal(t, "1", query(t, s, "SELECT 1"))
	info, err := os.Stat(filepath.Join(dir, "data", "PG_VERSION"))
	require.NoError(t, err)
	require.EqualValues(t, uid, info.Sys().(*syscall.Stat_t).Uid)
	status, err := os.ReadFile(procFile(s.PIDs()[0], "status"))
	require.NoError(t, err)
	require.Contains(t, string(status), fmt.Sprintf("Uid:\t%d\t%d", uid, uid))
	require.NoError(t, s.Stop(t.Context()))

	// The kernel forgets a child's tie to its parent at some changes of user.
	parent, _ := startElsewhere(t, dir)
	killParent(t, parent, filepath.Join(dir, "data"))
	start(t, Config{Dir: dir})
}

// TestNamelessUser: whoever this process is, also one of whom the system knows nothing but
// the number, makes a directory and opens it again.
func TestNamelessUser(t *testing.T) {
	dir := dirOf(t, nameless)
	program := filepath.Join(filepath.Dir(dir), "program")
	text, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, text, 0o755))
	for range 2 {
		cmd := helper(dir)
		cmd.Path, cmd.Dir = program, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nameless, Gid: nameless}}
		parent, server := startHelper(t, cmd)
		status, err := os.ReadFile(procFile(server, "status"))
		require.NoError(t, err)
		require.Contains(t, string(status), fmt.Sprintf("Uid:\t%d\t%d", nameless, nameless))
		killParent(t, parent, filepath.Join(dir, "data"))
	}
}

// TestNamespaces runs initdb and the server under each user that a user namespace may call root's.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root's server runs in a user namespace")
	}
	bin, err := findBinaries(t.Context(), "", mustIdentify(t, t.TempDir()))
	require.NoError(t, err)
	for _, id := range []int{ordinaryUsers[1], 1} {
		data := filepath.Join(t.TempDir(), "data")
		require.NoError(t, initData(t.Context(), bin, &identity{inside: id}, data), id)
	}
}

func TestExplainStart(t *testing.T) {
	refused := &os.PathError{Op: "fork/exec", Path: "postgres", Err: syscall.EPERM}
	err := (&identity{inside: 1000}).explainStart(refused)
	require.ErrorContains(t, err, "user namespace")
	require.ErrorIs(t, err, syscall.EPERM)
	err = (&identity{uid: nameless, inside: 1000}).explainStart(refused)
	require.ErrorContains(t, err, "/etc/passwd")
	require.ErrorIs(t, err, syscall.EPERM)
	unreadable := &os.PathError{Op: "fork/exec", Path: "postgres", Err: syscall.EACCES}
	require.ErrorContains(t, (&identity{uid: 1, change: true}).explainStart(unreadable), "user 1")
	require.Equal(t, error(refused), (&identity{}).explainStart(refused))
}
