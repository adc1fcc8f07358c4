package remote

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

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
		{url: "wss://h", err: "scheme wss: not supported: write https"},
		{url: "http://h:1", tls: "0", want: "http://h:1"},
		{url: "http://h", tls: "1", err: "http says otherwise"},
		{url: "ws://h:1", err: "scheme ws: not supported: write http,"},
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
		{name: "socket", url: "libsql:ws://h", is: driver.ErrUnsupported, says: "write http,"},
		{name: "checkpoint", url: "libsql:http://h", opts: driver.Options{Checkpoint: driver.Manual}, is: driver.ErrUnsupported},
		{name: "parameter", url: "libsql:http://h", opts: with("page_size", "4096", "authToken", "secret"), says: "parameter page_size: unknown"},
		{name: "timeout", url: "libsql:http://h", opts: with("timeout", "soon"), says: "parameter timeout"},
		{name: "row", url: "libsql:http://h", opts: with("max_row", "5MB"), says: "parameter max_row"},
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

// answer wraps the result of one step.
func answer(text string) string {
	return `{"baton":"1","results":[{"type":"ok","response":{"type":"batch","result":{"step_results":[` + text + `],"step_errors":[null]}}}]}`
}

func TestBadServers(t *testing.T) {
	const token = "secret-token"
	rows := func(text string) string {
		return answer(`{"cols":[{"name":"x"}],"rows":` + text + `,"affected_row_count":0}`)
	}
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
		{"message", 400, `{"message":"a reason","code":"STREAM_EXPIRED"}`, "a reason"},
		{"server error", 500, "oops", "HTTP status 500: oops"},
		{"long error", 500, strings.Repeat("oops ", 10000), "…"},
		{"no JSON", 200, "<html>secret-token</html>", "not of the protocol Hrana"},
		{"truncated JSON", 200, rows(`[[{"type":"integer","value":"1"}]]`)[:60], "unexpected EOF"},
		{"JSON of another kind", 200, `[1,2]`, "not of the protocol Hrana"},
		{"empty object", 200, `{}`, "not of the protocol Hrana"},
		{"null", 200, `null`, "not of the protocol Hrana"},
		{"no response", 200, `{"baton":"1","results":[{"type":"ok"}]}`, "libsql server"},
		{"result of another kind", 200, answer("[]"), "not of the protocol Hrana"},
		{"no result", 200, answer("null"), "the server ended the transaction"},
		{"row of another width", 200, rows(`[[]]`), "not of the protocol Hrana"},
		{"integer of another kind", 200, rows(`[[{"type":"integer","value":7}]]`), "not of the protocol Hrana"},
		{"error of the server", 200, `{"baton":"1","results":[{"type":"error","error":{"message":"SQLite error: no such secret-token"}}]}`, "no such [token]"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+token {
					t.Error("without the token")
				}
				w.WriteHeader(tc.status)
				fmt.Fprint(w, tc.body)
			}))
			defer s.Close()
			t.Setenv(tokenVariable, token)
			_, err := openURL("libsql:"+s.URL, with())
			require.ErrorContains(t, err, tc.says)
			require.Nil(t, causes(err, token))
			require.Less(t, len(err.Error()), 2*maxMessage)
		})
	}
}

// causes returns the first error in a tree whose text has a word in it.
func causes(err error, word string) error {
	if err == nil {
		return nil
	}
	if strings.Contains(err.Error(), word) {
		return err
	}
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case interface{ Unwrap() error }:
		return causes(e.Unwrap(), word)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if found := causes(inner, word); found != nil {
				return found
			}
		}
	}
	return nil
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	for _, scheme := range []string{"http", "https"} {
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
	_, err = openURL("libsql:http://"+l.Addr().String(), with("timeout", "30ms"))
	require.ErrorContains(t, err, "context deadline exceeded")
}
