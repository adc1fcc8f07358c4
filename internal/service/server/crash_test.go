package server_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// crashEnv names the store that a child process serves until it is killed.
const crashEnv = "VARVE_TEST_SERVE_CRASH"

// TestKill kills a server under load. Every write that it has acknowledged is in the store, the
// store is whole, and the lease that kept other servers away is gone with it.
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

// loadAndKill writes rising versions of the entities from several connections and kills the server in between.
func loadAndKill(t *testing.T, url string, round int, acknowledged map[int]int) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKill$")
	child.Env = append(os.Environ(), crashEnv+"="+url)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	var address string
	_, err = fmt.Fscanf(out, "serving %s\n", &address)
	require.NoError(t, err)
	_, err = service.New(t.Context(), openDB(t, url), service.Options{})
	require.ErrorIs(t, err, store.ErrLocked, "a second server")

	const clients, enough = 8, 150
	var mu sync.Mutex
	var wg sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	count := 0
	for c := range clients {
		wg.Go(func() {
			for v := round*1_000_000 + 1; ; v++ {
				n := c*10 + v%10
				status, err := put(client, address, n, strconv.Itoa(v))
				if err != nil {
					return // it is dead
				}
				if status >= 300 {
					t.Errorf("status %d", status)
				}
				mu.Lock()
				acknowledged[n] = v
				if count++; count == enough {
					require.NoError(t, child.Process.Kill())
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Error(t, child.Wait(), "it was killed")
}

// verifyStore opens the store again, as a server does, and checks that each entity is at least as new as what
// was acknowledged: the last write of a client may have been committed without an answer.
func verifyStore(t *testing.T, url string, acknowledged map[int]int) {
	t.Helper()
	db, s := newService(t, url, service.Options{})
	defer s.Close() // the next server is to have the lease
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	_, err = ents.Verify(t.Context())
	require.NoError(t, err)
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
