package remote

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

func TestTarget(t *testing.T) {
	tests := []struct{ url, tls, want, err string }{
		{url: "libsql://h", want: "https://h"},
		{url: "libsql://h", tls: "1", want: "https://h"},
		{url: "libsql://h:80", tls: "0", want: "http://h:80"},
		{url: "libsql://h", tls: "0", err: "needs a port"},
		{url: "https://h", want: "https://h"},
		{url: "https://h", tls: "1", want: "https://h"},
		{url: "https://h", tls: "0", err: "https says otherwise"},
		{url: "wss://h", tls: "false", err: "wss says otherwise"},
		{url: "http://h:1", tls: "0", want: "http://h:1"},
		{url: "http://h", tls: "1", err: "http says otherwise"},
		{url: "ws://h", tls: "true", err: "ws says otherwise"},
		{url: "libsql://h", tls: "maybe", err: "want 0 or 1"},
	}
	for _, tc := range tests {
		t.Run(tc.url+" "+tc.tls, func(t *testing.T) {
			u, err := url.Parse(tc.url)
			require.NoError(t, err)
			c, err := newConnector(u, with("tls", tc.tls))
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, c.server)
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := []struct {
		name, url string
		opts      driver.Options
		is        error
		says      string
	}{
		{name: "file", url: "libsql:x.db", is: driver.ErrUnsupported, says: "store/libsql in its place"},
		{name: "durability", url: "libsql:http://h", opts: driver.Options{Durability: driver.Relaxed}, is: driver.ErrUnsupported},
		{name: "checkpoint", url: "libsql:http://h", opts: driver.Options{Checkpoint: driver.Manual}, is: driver.ErrUnsupported},
		{name: "parameter", url: "libsql:http://h", opts: with("page_size", "4096", "authToken", "secret"), says: "parameter page_size: unknown"},
		{name: "timeout", url: "libsql:http://h", opts: with("timeout", "soon"), says: "parameter timeout"},
		{name: "password", url: "libsql:http://secret:secret@h", says: "user or password"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := openURL(tc.url, tc.opts)
			require.Error(t, err)
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
			require.ErrorContains(t, err, tc.says)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

// result wraps rows of one column as an answer to a statement.
func result(rows string) string {
	return `{"baton":"1","results":[{"type":"ok","response":{"type":"execute","result":{"cols":[{"name":"x"}],"rows":` + rows + `,"affected_row_count":0}}}]}`
}

func TestBadServers(t *testing.T) {
	const token = "secret-token"
	tests := []struct {
		name   string
		status int
		body   string
		says   string
	}{
		{"unauthorized", 401, `{"error":"no"}`, "it refuses the token, or wants one"},
		{"unauthorized, repeats the token", 401, `{"error":"not secret-token"}`, "not [token]"},
		{"forbidden, no JSON", 403, "not secret-token", "it refuses the token, or wants one"},
		{"not found", 404, "<html>secret-token</html>", "no libSQL server answers at this address"},
		{"server error", 500, "oops", "HTTP status 500: oops"},
		{"long error", 500, strings.Repeat("oops ", 10000), "…"},
		{"no JSON", 200, "<html>secret-token</html>", "not of the protocol Hrana"},
		{"truncated JSON", 200, result(`[[{"type":"integer","value":"1"}]]`)[:60], "not of the protocol Hrana"},
		{"JSON of another kind", 200, `[1,2]`, "not of the protocol Hrana"},
		{"empty object", 200, `{}`, "not of the protocol Hrana"},
		{"null", 200, `null`, "not of the protocol Hrana"},
		{"no response", 200, `{"baton":"1","results":[{"type":"ok"}]}`, "no response received"},
		{"response of another type", 200, `{"baton":"1","results":[{"type":"ok","response":{"type":"secret"}}]}`, "unknown response type"},
		{"result of another kind", 200, `{"baton":"1","results":[{"type":"ok","response":{"type":"execute","result":[]}}]}`, "not of the protocol Hrana"},
		{"row of another width", 200, result(`[[]]`), "not of the protocol Hrana"},
		{"integer of another kind", 200, result(`[[{"type":"integer","value":7}]]`), "not of the protocol Hrana"},
		{"error of the server", 200, `{"baton":"1","results":[{"type":"error","error":{"message":"SQLite error: no such secret-token"}}]}`, "no such [token]"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				fmt.Fprint(w, tc.body)
			}))
			defer s.Close()
			_, err := openURL("libsql:"+s.URL, with("authToken", token))
			require.ErrorContains(t, err, "libsql server "+s.URL)
			require.ErrorContains(t, err, tc.says)
			require.Nil(t, causes(err, token))
			require.Less(t, len(err.Error()), 2*maxMessage)
		})
	}
}

func TestBadSockets(t *testing.T) {
	const token = "secret-token"
	tests := []struct{ name, first, second, says string }{
		{"hello refused", `{"type":"hello_error","error":{"message":"not secret-token"}}`, "{}", "handshake error: not [token]"},
		{"hello refused without a reason", `{"type":"hello_error"}`, "{}", "not of the protocol Hrana"},
		{"no object", `7`, `7`, "not of the protocol Hrana"},
		{"no JSON", `<html>`, "", "libsql server"},
		{"stream refused", `{"type":"hello_ok"}`, `{"type":"response_error","error":{"message":"no"}}`, "libsql server"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"hrana1"}})
				if err != nil {
					return
				}
				defer func() { _ = socket.CloseNow() }()
				ctx := t.Context() // a hijacked connection outlives its server
				for _, text := range []string{tc.first, tc.second} {
					_, _, _ = socket.Read(ctx)
					_ = socket.Write(ctx, websocket.MessageText, []byte(text))
				}
				_, _, _ = socket.Read(ctx)
			}))
			defer s.Close()
			_, err := openURL("libsql:ws"+strings.TrimPrefix(s.URL, "http"), with("authToken", token, "timeout", "5s"))
			require.ErrorContains(t, err, tc.says)
			require.Nil(t, causes(err, token))
		})
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	for _, scheme := range []string{"http", "https", "ws"} {
		_, err = openURL("libsql:"+scheme+"://"+address, with("authToken", "secret-token"))
		require.ErrorContains(t, err, "connection refused")
		require.ErrorContains(t, err, "libsql server "+scheme+"://"+address)
		require.NotErrorIs(t, err, driver.ErrUnknownOutcome)
		require.Nil(t, causes(err, "secret-token"))
	}
}

func TestSilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts by its backlog and says nothing
	require.NoError(t, err)
	defer l.Close()
	for _, scheme := range []string{"http", "ws"} {
		_, err = openURL("libsql:"+scheme+"://"+l.Addr().String(), with("timeout", "30ms"))
		require.ErrorContains(t, err, "context deadline exceeded")
	}
}
