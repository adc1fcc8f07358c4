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
// process, which REST has too and which may be off.
func (s *Server) arkiv(gate *service.Gate) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.service.Metrics().Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.Handle("/", s.opts.Arkiv.Handler)
	if s.opts.Arkiv.Public {
		return mux
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A browser asks whether it may before it shows the token.
		if err := gate.Authorize(r.Header.Get("Authorization")); err != nil && r.Method != http.MethodOptions {
			w.Header().Set("WWW-Authenticate", `Bearer realm="varve"`)
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
