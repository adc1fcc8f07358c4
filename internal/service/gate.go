package service

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// MinToken is the length in bytes below which a token is refused.
const MinToken = 16

// Gate decides which requests come in: who shows the token, while there is room.
type Gate struct {
	token atomic.Pointer[[sha256.Size]byte] // nil: none is needed
	slots chan struct{}                     // one for each request at a time
	rate  *rate.Limiter                     // nil: no limit
}

// GateOptions say what a gate lets in. The zero value lets in everything.
type GateOptions struct {
	Token      string  // that requests show; empty: none is needed
	Concurrent int     // requests at a time; zero: no limit
	PerSecond  float64 // requests a second, over all clients; zero: no limit
}

// NewGate returns a gate.
func NewGate(o GateOptions) (*Gate, error) {
	if o.Concurrent < 0 || o.PerSecond < 0 {
		return nil, fmt.Errorf("gate: %d requests at a time, %g a second", o.Concurrent, o.PerSecond)
	}
	g := &Gate{}
	if o.Token != "" {
		if err := g.SetToken(o.Token); err != nil {
			return nil, err
		}
	}
	if o.Concurrent > 0 {
		g.slots = make(chan struct{}, o.Concurrent)
	}
	if o.PerSecond > 0 {
		g.rate = rate.NewLimiter(rate.Limit(o.PerSecond), max(1, int(o.PerSecond/10)))
	}
	return g, nil
}

// SetToken changes the token that later requests show.
func (g *Gate) SetToken(token string) error {
	if len(token) < MinToken {
		return fmt.Errorf("a token of %d bytes is too short: want at least %d, such as those of openssl rand -hex 32", len(token), MinToken)
	}
	sum := sha256.Sum256([]byte(token))
	g.token.Store(&sum)
	return nil
}

// Authorize checks the value of an Authorization header. Hashes of the same
// length are compared in constant time, so that neither the token nor its length
// shows in how long it takes.
func (g *Gate) Authorize(header string) error {
	want := g.token.Load()
	if want == nil {
		return nil
	}
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return fmt.Errorf("%w: want the header Authorization: Bearer TOKEN", ErrUnauthenticated)
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	if subtle.ConstantTimeCompare(sum[:], want[:]) != 1 {
		return fmt.Errorf("%w: another token", ErrUnauthenticated)
	}
	return nil
}

// Enter takes a place, which Leave gives back. It fails with ErrRate or ErrBusy
// and does not wait: a client that is told can try elsewhere.
func (g *Gate) Enter() error {
	if g.rate != nil && !g.rate.Allow() {
		return ErrRate
	}
	if g.slots == nil {
		return nil
	}
	select {
	case g.slots <- struct{}{}:
		return nil
	default:
		return fmt.Errorf("%w: %d requests at a time", ErrBusy, cap(g.slots))
	}
}

// Leave gives back the place of an Enter that did not fail.
func (g *Gate) Leave() {
	if g.slots != nil {
		<-g.slots
	}
}
