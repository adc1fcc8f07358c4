package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
)

// lateCancels puts a relay before a server, and returns the URL that leads
// through it. It passes requests to cancel on only after late, or not at all if
// late is 0.
func lateCancels(t *testing.T, rawURL string, late time.Duration) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	q := u.Query()
	plain := *u
	plain.RawQuery = url.Values{"host": q["host"], "port": q["port"]}.Encode()
	server, err := pgx.ParseConfig(plain.String())
	require.NoError(t, err)
	network, address := pgconn.NetworkAddress(server.Host, server.Port)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go relay(t.Context(), client, network, address, late)
		}
	}()
	q.Set("host", "127.0.0.1")
	q.Set("port", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return u.String()
}

// relay connects a client with a server until one of them hangs up. Where it
// never answers, it holds the client until ctx ends.
func relay(ctx context.Context, client net.Conn, network, address string, late time.Duration) {
	defer client.Close()
	first := make([]byte, 8)
	if _, err := io.ReadFull(client, first); err != nil {
		return
	}
	const cancelRequest = 80877102 // https://www.postgresql.org/docs/current/protocol-message-formats.html
	if binary.BigEndian.Uint32(first[4:]) == cancelRequest {
		if late == 0 {
			<-ctx.Done()
			return
		}
		time.Sleep(late)
	}
	server, err := net.Dial(network, address)
	if err != nil {
		return
	}
	defer server.Close()
	if _, err := server.Write(first); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

// TestLateCancel: a request to cancel that arrives when its statement has ended
// does not cancel another one.
func TestLateCancel(t *testing.T) {
	for name, late := range map[string]time.Duration{"late": 500 * time.Millisecond, "never": 0} {
		t.Run(name, func(t *testing.T) {
			e := openTest(t, lateCancels(t, pgtest.NewURL(t), late), nil)
			tx, err := e.Begin(t.Context())
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err = tx.Exec(ctx, "SELECT pg_sleep(0.1)") // ends by itself
			t.Logf("the statement whose context ended: %v", err)
			_ = tx.Rollback() // fails if the connection was given up
			tx, err = e.Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), "SELECT pg_sleep(1)")
			require.NoError(t, errors.Join(err, tx.Rollback()))
		})
	}
}
