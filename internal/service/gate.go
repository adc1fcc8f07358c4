package service

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/store/event"
)

// MaxHeader bounds the bytes of a request's headers or metadata.
const MaxHeader = 16 << 10

// The limits of a decoded request. They are checked before decoding, because a
// few bytes, even fewer when compressed, can become much memory.
const (
	MaxList    = event.MaxEvents // items of a list
	MaxMembers = 4096            // of an object of JSON; attributes have fewer
	MaxDecoded = 48 << 20        // bytes of all items, besides the request's own bytes
)

// MinToken is the minimum length of a token in bytes.
const MinToken = 16

// The defaults of GateOptions.
const (
	DefaultConcurrent    = 1024
	DefaultSubscriptions = 256
	DefaultMemory        = 16 << 20
)

// Gate decides which requests are admitted: those with the token, while there
// is capacity.
type Gate struct {
	token atomic.Pointer[[sha256.Size]byte] // nil: none is needed
	hosts []string                          // accepted hosts, in addition to this machine
	any   bool                              // all hosts are accepted

	rate *rate.Limiter // nil: no limit

	requests      places       // for requests, except the following ones
	subscriptions places       // for requests that the client ends
	Memory        *quota.Quota // for bodies and answers
	Decoding      *quota.Quota // for decoded bodies, besides the bodies themselves
}

// GateOptions are the limits of a gate. A zero limit means its default.
type GateOptions struct {
	Token string // that requests must send; empty: none is needed

	// Local admits only requests for this machine, addressed to a loopback
	// address, to localhost, or to one of Hosts. This protects a service
	// without a token from web pages whose host name resolves to 127.0.0.1 (DNS
	// rebinding).
	Local bool
	Hosts []string

	Concurrent    int     // requests at a time
	Subscriptions int     // at a time
	Memory        int64   // bytes of bodies and answers at a time
	PerSecond     float64 // requests a second, over all clients; zero: no limit
}

// NewGate returns a gate.
func NewGate(o GateOptions) (*Gate, error) {
	if o.Concurrent < 0 || o.Subscriptions < 0 || o.Memory < 0 || o.PerSecond < 0 {
		return nil, fmt.Errorf("a limit below zero: %d requests and %d subscriptions at a time in %d bytes, %g a second", o.Concurrent, o.Subscriptions, o.Memory, o.PerSecond)
	}
	o.Concurrent = cmp.Or(o.Concurrent, DefaultConcurrent)
	o.Subscriptions = cmp.Or(o.Subscriptions, DefaultSubscriptions)
	o.Memory = cmp.Or(o.Memory, DefaultMemory)
	g := &Gate{
		hosts: o.Hosts, any: !o.Local, Memory: quota.New(o.Memory), Decoding: quota.New(o.Memory),
		requests: newPlaces(o.Concurrent, "requests"), subscriptions: newPlaces(o.Subscriptions, "subscriptions"),
	}
	if o.Token != "" {
		if err := g.SetToken(o.Token); err != nil {
			return nil, err
		}
	}
	if o.PerSecond > 0 {
		g.rate = rate.NewLimiter(rate.Limit(o.PerSecond), max(1, int(o.PerSecond/10)))
	}
	return g, nil
}

// SetToken changes the token that later requests must send.
func (g *Gate) SetToken(token string) error {
	if len(token) < MinToken {
		return fmt.Errorf("a token of %d bytes is too short: want at least %d, such as the output of openssl rand -hex 32", len(token), MinToken)
	}
	sum := sha256.Sum256([]byte(token))
	g.token.Store(&sum)
	return nil
}

// Authorize checks which host a request is for, and its Authorization header.
// It is called before any of the body is read. It compares hashes in constant
// time, so that timing reveals neither the token nor its length.
func (g *Gate) Authorize(host, header string) error {
	if err := g.Host(host); err != nil {
		return err
	}
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
		return fmt.Errorf("%w: wrong token", ErrUnauthenticated)
	}
	return nil
}

// Host checks which host a request is for: the Host header of HTTP, or the
// authority of gRPC.
func (g *Gate) Host(host string) error {
	if g.any {
		return nil
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if address, err := netip.ParseAddr(name); err == nil && address.IsLoopback() {
		return nil
	}
	is := func(other string) bool { return strings.EqualFold(name, other) }
	if is("localhost") || slices.ContainsFunc(g.hosts, is) {
		return nil
	}
	return fmt.Errorf("%w: %q; without a token a request must be for localhost, a loopback address, or a name that --host gives", ErrHost, host)
}

// Enter takes a place for a request, among the subscriptions if it follows
// events. It fails with ErrRate or ErrBusy.
func (g *Gate) Enter(follows bool) (leave func(), err error) {
	if g.rate != nil && !g.rate.Allow() {
		return nil, ErrRate
	}
	if follows {
		return g.subscriptions.enter()
	}
	return g.requests.enter()
}

// places bounds the concurrent number of something.
type places struct {
	taken chan struct{}
	of    string
	leave func()
}

func newPlaces(n int, of string) places {
	taken := make(chan struct{}, n)
	return places{taken, of, func() { <-taken }}
}

// enter takes a place, which leave returns. It fails with ErrBusy instead of
// waiting, so that the client can try another server.
func (p places) enter() (leave func(), err error) {
	select {
	case p.taken <- struct{}{}:
		return p.leave, nil
	default:
		return nil, fmt.Errorf("%w: %d %s at a time", ErrBusy, cap(p.taken), p.of)
	}
}
