package accesslog_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/accesslog"
)

// TestHandler: a request has the id that its client gave it, else that of its trace, else a
// new one; header and log have the same.
func TestHandler(t *testing.T) {
	const trace = "0af7651916cd43dd8448eb211c80319c"
	var log bytes.Buffer
	h := accesslog.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accesslog.Add(r.Context(), slog.Int("n", 7))
		w.WriteHeader(http.StatusTeapot)
	}), slog.New(slog.NewTextHandler(&log, nil)))
	for name, c := range map[string]struct{ id, parent, want, trace string }{
		"nothing":        {},
		"id":             {"mine", "", "mine", ""},
		"trace":          {"", "00-" + trace + "-b7ad6b7169203331-01", trace, trace},
		"both":           {"mine", "00-" + trace + "-b7ad6b7169203331-00", "mine", trace},
		"no trace":       {"mine", "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", "mine", ""},
		"bad id, traced": {"a b", "00-" + trace + "-b7ad6b7169203331-01", trace, trace},
	} {
		log.Reset()
		r := httptest.NewRequest("GET", "/path", nil)
		for header, value := range map[string]string{accesslog.Header: c.id, accesslog.TraceHeader: c.parent} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		id := w.Header().Get(accesslog.Header)
		require.NotEmpty(t, id, name)
		if c.want != "" {
			require.Equal(t, c.want, id, name)
		}
		want := "id=" + id + " from="
		if c.trace != "" {
			want = "id=" + id + " trace_id=" + c.trace + " from="
		}
		require.Contains(t, log.String(), want, name)
		require.Contains(t, log.String(), "method=GET path=/path status=418 bytes=0", name)
		require.Contains(t, log.String(), " n=7\n", name)
	}
}
