package server

import (
	"net/http"

	arkivrpc "github.com/varvedb/varve/node/rpc"

	"github.com/varvedb/varve/internal/service"
)

// Arkiv is Arkiv's JSON-RPC beside the service's own interfaces.
type Arkiv struct {
	Address string // empty means 127.0.0.1:0
	Handler *arkivrpc.Handler

	// Public lets in whoever reaches the address, also off loopback and without the token:
	// what a chain says is public.
	Public bool
}

// arkiv returns what is served at the address of Arkiv: its JSON-RPC, and what tells of the
// process, which REST has too and which may be off. What is public has counters only for
// who has a token.
func (s *Server) arkiv(gate *service.Gate) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	if s.opts.Arkiv.Public {
		mux.Handle("/", s.opts.Arkiv.Handler)
	} else {
		mux.Handle("/", authorized(gate, s.opts.Arkiv.Handler))
	}
	if !s.opts.Arkiv.Public || s.opts.Token != "" {
		mux.Handle("GET /metrics", authorized(gate, s.service.Metrics().Handler()))
	}
	return mux
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
