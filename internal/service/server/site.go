package server

import (
	"io"
	"net/http"

	"github.com/varvedb/varve/internal/service"
)

// Site is one more address, for what is not the service's own, such as Arkiv's JSON-RPC.
// It is served as the others are, and may be without them.
type Site struct {
	Name    string // for errors
	Address string // empty means 127.0.0.1:0

	// Handler gets what is not asked of the process itself. One that can be closed is,
	// when the server ends: it may have connections that no server of HTTP knows any more.
	Handler http.Handler

	// Metrics are those of the process; nil: none. Where Public is, only who has a token
	// gets them.
	Metrics http.Handler

	// Public lets in whoever reaches the address, also off loopback and without the token.
	Public bool
}

// handler returns what is served at the address: the handler, and what tells of the
// process, which REST has too and which may be off.
func (s *Site) handler(gate *service.Gate, token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	if s.Public {
		mux.Handle("/", s.Handler)
	} else {
		mux.Handle("/", authorized(gate, s.Handler))
	}
	if s.Metrics != nil && (!s.Public || token != "") {
		mux.Handle("GET /metrics", authorized(gate, s.Metrics))
	}
	return mux
}

func (s *Site) close() error {
	if c, ok := s.Handler.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// authorized lets in who shows the token. A browser asks whether it may before it shows it.
func authorized(gate *service.Gate, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := gate.Authorize(r.Header.Get("Authorization")); err != nil && r.Method != http.MethodOptions {
			w.Header().Set("WWW-Authenticate", `Bearer realm="varve"`)
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
