//go:build !linux

package pgembed

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/varvedb/varve/store/driver"
)

// Server does not exist on this system, because ending a server together with
// its parent, and finding its remains, needs Linux.
type Server struct{}

// Start fails with driver.ErrUnsupported.
func Start(_ context.Context, cfg Config) (*Server, error) {
	if _, err := cfg.check(); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return nil, fmt.Errorf("postgres: start %q: an embedded server needs Linux; name a running one by its address: %w",
		cfg.Dir, driver.ErrUnsupported)
}

// RemoveSockets returns nil.
func RemoveSockets(string) error { return nil }

// SocketDir returns "".
func (*Server) SocketDir() string { return "" }

// Ended returns nil.
func (*Server) Ended() <-chan struct{} { return nil }

// ConnConfig fails.
func (*Server) ConnConfig() (*pgx.ConnConfig, error) { return nil, driver.ErrUnsupported }

// PIDs returns nil.
func (*Server) PIDs() []int { return nil }

// Stop returns nil.
func (*Server) Stop(context.Context) error { return nil }
