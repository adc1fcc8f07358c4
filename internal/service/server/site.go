package server

import (
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/varvedb/varve/internal/accesslog"
	"github.com/varvedb/varve/internal/service"
)

// Site is an additional address, for a handler that does not belong to the
// service, such as Arkiv's JSON-RPC. It is served like the other addresses,
// with or without them.
type Site struct {
	Name    string // for errors
	Address string // empty means 127.0.0.1:0

	// Handler gets all requests except those for health and metrics. If it has
	// a Close method, that is called when the server ends, because the handler
	// may have taken over connections.
	Handler http.Handler

	// Metrics serves the metrics of the process; nil means none. If Public is
	// set, they still need the token.
	Metrics http.Handler

	// Public accepts all requests without the token, even on other addresses
	// than loopback.
	Public bool
}

// handler returns the handler of the address: Handler, and the health and
// metrics of the process, because REST, which also has them, may be off.
func (s *Site) handler(gate *service.Gate, token string, access *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	handler := s.Handler
	if !s.Public {
		handler = authorized(gate, handler, access)
	}
	mux.Handle("/", handler)
	if s.Metrics != nil && (!s.Public || token != "") {
		mux.Handle("GET /metrics", authorized(gate, s.Metrics, access))
	}
	return mux
}

func (s *Site) close() error {
	if c, ok := s.Handler.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// authorized passes requests with the token. A browser's CORS preflight, which
// cannot have the token, passes too. Refused requests are logged here; the
// handler logs the others.
func authorized(gate *service.Gate, next http.Handler, access *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := gate.Authorize(r.Host, r.Header.Get("Authorization"))
		if err == nil || r.Method == http.MethodOptions && !errors.Is(err, service.ErrHost) {
			next.ServeHTTP(w, r)
			return
		}
		accesslog.Handler(refusal(err), access).ServeHTTP(w, r)
	})
}

func refusal(err error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		class := service.Classify(err)
		if class.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="varve"`)
		}
		w.Header().Set("Connection", "close") // the body is not waited for
		http.Error(w, class.Detail(err), class.Status)
	})
}
