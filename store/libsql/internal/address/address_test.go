package address_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/libsql/internal/address"
)

func TestParse(t *testing.T) {
	tests := []struct{ url, path, server, err string }{
		{url: "libsql:///abs/x.db", path: "/abs/x.db"},
		{url: "libsql:/abs/x.db", path: "/abs/x.db"},
		{url: "libsql:x.db", path: "x.db"},
		{url: "libsql:./dir/x.db", path: "./dir/x.db"},
		{url: "libsql:a%3Fb%20c", path: "a?b c"},
		{url: "libsql:httpd.db", path: "httpd.db"},
		{url: "libsql:./http:x", path: "./http:x"},
		{url: "libsql:https://h", server: "https://h"},
		{url: "libsql:HTTPS://h:8080/ns", server: "https://h:8080/ns"},
		{url: "libsql:http://127.0.0.1:8080", server: "http://127.0.0.1:8080"},
		{url: "libsql:http://[::1]:8080", server: "http://[::1]:8080"},
		{url: "libsql:ws://h:1", server: "ws://h:1"},
		{url: "libsql:wss://h", server: "wss://h"},
		{url: "libsql://h", server: "libsql://h"},
		{url: "libsql://h:8080", server: "libsql://h:8080"},
		{url: "libsql:", err: "no path"},
		{url: "libsql::memory:", err: "lives in a file"},
		{url: "libsql:https:x.db", err: "no host"},
		{url: "libsql:https://", err: "no host"},
		{url: "libsql:https://:80", err: "no host"},
		{url: "libsql:https://h:port", err: "invalid port"},
		{url: "libsql:https://name:secret@h", err: "user or password"},
		{url: "libsql:https://name:secret@h:port", err: "address of a libSQL server"},
		{url: "libsql://secret@h", err: "user or password"},
		{url: "libsql://secret@/x.db", err: "user or password"},
	}
	for _, tc := range tests {
		t.Run(tc.url, func(t *testing.T) {
			u, err := url.Parse(tc.url)
			require.NoError(t, err)
			at, err := address.Parse(u)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				require.NotContains(t, err.Error(), "secret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.path, at.Path)
			require.Equal(t, tc.server != "", at.Server != nil)
			if at.Server != nil {
				require.Equal(t, tc.server, at.Server.String())
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("libsql:https://h:1/x")
	f.Add("libsql:x.db")
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "libsql" {
			t.Skip("not a URL of libSQL")
		}
		at, err := address.Parse(u)
		if err != nil {
			return
		}
		require.NotEqual(t, at.Path == "", at.Server == nil, "one of the two")
		if at.Server != nil {
			require.NotEmpty(t, at.Server.Hostname())
			require.False(t, strings.Contains(at.Server.String(), "@") && at.Server.User != nil)
		}
	})
}
