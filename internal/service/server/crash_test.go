package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// crashEnv names the store that a child process serves until it is killed.
const crashEnv = "VARVE_TEST_SERVE_CRASH"

// TestKill kills a server under load. Every write that it has acknowledged is in
// the store, the store is whole, and the lease that kept other servers away is
// gone with it.
func TestKill(t *testing.T) {
	if url := os.Getenv(crashEnv); url != "" {
		serveUntilKilled(t, url)
		return
	}
	url := newURL(t) + "?durability=durable"
	acknowledged := map[int]int{} // version by entity
	for round := range 2 {
		loadAndKill(t, url, round, acknowledged)
		require.NotEmpty(t, acknowledged)
		verifyStore(t, url, acknowledged)
	}
}

func serveUntilKilled(t *testing.T, url string) {
	_, s := newService(t, url, service.Options{})
	srv, err := server.Listen(t.Context(), s, server.Options{})
	require.NoError(t, err)
	fmt.Printf("serving %s\n", srv.REST())
	require.NoError(t, srv.Run(context.Background()))
}

// loadAndKill writes rising versions of the entities from several connections and
// kills the server in between.
func loadAndKill(t *testing.T, url string, round int, acknowledged map[int]int) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKill$")
	child.Env = append(os.Environ(), crashEnv+"="+url)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	address, ok := strings.CutPrefix(lines.Text(), "serving ")
	require.True(t, ok, lines.Text())

	refuseSecond(t, url)
	const clients, enough = 8, 150
	var mu sync.Mutex
	var wg sync.WaitGroup
	kill := sync.OnceFunc(func() { require.NoError(t, child.Process.Kill()) })
	w := &world{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}}
	defer w.client.CloseIdleConnections()
	count := 0
	for c := range clients {
		wg.Go(func() {
			for v := round*1_000_000 + 1; ; v++ {
				n := c*10 + v%10
				status, err := putTo(w.client, address, n, v)
				if err != nil {
					return // it is dead
				}
				if status >= 300 {
					t.Errorf("status %d", status)
					return
				}
				mu.Lock()
				acknowledged[n] = v
				if count++; count == enough {
					kill()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	kill()
	require.Error(t, child.Wait(), "it was killed")
}

// refuseSecond checks that no other server writes the store.
func refuseSecond(t *testing.T, url string) {
	t.Helper()
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	_, err = service.New(t.Context(), db, service.Options{})
	require.ErrorIs(t, err, store.ErrLocked)
	require.NoError(t, db.Close())
}

func putTo(client *http.Client, address string, n, v int) (int, error) {
	req, err := http.NewRequest(http.MethodPut, fmt.Sprintf("http://%s/v1/entities/0x%064x/payload", address, n), strings.NewReader(strconv.Itoa(v)))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "text/plain")
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// verifyStore opens the store again, as a server does, and checks that each entity
// is at least as new as what was acknowledged: the last write of a client may
// have been committed without an answer.
func verifyStore(t *testing.T, url string, acknowledged map[int]int) {
	t.Helper()
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer db.Close()
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	_, err = ents.Verify(t.Context())
	require.NoError(t, err)
	keys, err := seal.New(bytes.Repeat([]byte{1}, seal.KeySize))
	require.NoError(t, err)
	s, err := service.New(t.Context(), db, service.Options{Keys: keys})
	require.NoError(t, err)
	defer s.Close()
	for n, v := range acknowledged {
		key, err := entity.ParseKey(fmt.Sprintf("0x%064x", n))
		require.NoError(t, err)
		e, err := s.Get(t.Context(), key, nil)
		require.NoError(t, err, "entity %d, version %d was acknowledged", n, v)
		stored, err := strconv.Atoi(string(e.Content))
		require.NoError(t, err)
		require.GreaterOrEqual(t, stored, v, "entity %d", n)
	}
}
