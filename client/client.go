// Package client is the event store of a service in another process, varve serve. What
// Dial returns is an event.Store as store.Events is, and an event.Checkpointer, so that
// what decides or consumes on one does so on the other:
//
//	events, err := client.Dial("127.0.0.1:8081", nil)
//	…
//	cond, err := event.Project(ctx, events, balance)
//	…
//	positions, err := events.Append(ctx, decided, cond) // a *event.ConflictError: decide anew
//
// It links gRPC and no engine.
package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/store/event"
)

// DefaultRetry is how long calls are repeated when Options.Retry is zero.
const DefaultRetry = 10 * time.Second

// maxMessage bounds a message of the service: an event of the largest size, and
// its envelope.
const maxMessage = event.MaxData + event.MaxMetadata + 1<<20

// window is how many bytes of a stream are taken before the caller asks for them.
const window = 256 << 10

// Options of a client. The zero value is for a service on loopback without a token.
type Options struct {
	// TLS secures the connection; nil is plain text, in which a token can be read.
	TLS *tls.Config

	// Token is shown with every call; empty is none.
	Token string

	// Retry is how long a call is repeated that the service or the connection have failed
	// and that does no harm if it was done before: what reads, and an append whose events
	// all have IDs. Zero means DefaultRetry, below zero calls are not repeated. A
	// subscription that has begun is carried on without end.
	Retry time.Duration

	// Dial are further options of the connection.
	Dial []grpc.DialOption
}

// Events is the event store of a service. Its methods may be called from
// several goroutines, which share a connection. They fail like the methods of
// store.Events, with the same errors for errors.Is and errors.As. They also
// fail with store.ErrUnavailable when the service is not reached, and with
// store.ErrUnknownOutcome when an append was sent and no answer came: the
// connection broke, or ctx ended, whose error is wrapped as well. The append
// was done or not; when its events have IDs, repeat it to know.
type Events struct {
	conn   *grpc.ClientConn
	rpc    varvev1.EventServiceClient
	retry  time.Duration
	closed atomic.Bool
}

var _ event.Checkpointer = (*Events)(nil)

// Dial returns a client of the service at a target of gRPC, such as host:port. It does
// not wait for a connection: that is made with the first call, and again when it is lost.
// A nil opts means the zero value. The caller closes the client.
func Dial(target string, opts *Options) (*Events, error) {
	if opts == nil {
		opts = &Options{}
	}
	secure := insecure.NewCredentials()
	if opts.TLS != nil {
		secure = credentials.NewTLS(opts.TLS.Clone())
	}
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstPause, Multiplier: 2, Jitter: 0.2, MaxDelay: lastPause},
			MinConnectTimeout: 5 * time.Second,
		}),
		// To find a window, gRPC would add a ping to every exchange of small messages.
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(8 * window),
		grpc.WithDisableRetry(), // except of unsent calls; calls are repeated here
		// A subscription may be silent for long on a connection that is dead.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
	}
	if opts.Token != "" {
		dial = append(dial, grpc.WithPerRPCCredentials(token{"authorization": "Bearer " + opts.Token}))
	}
	conn, err := grpc.NewClient(target, append(dial, opts.Dial...)...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", target, err)
	}
	e := &Events{conn: conn, rpc: varvev1.NewEventServiceClient(conn), retry: opts.Retry}
	if e.retry == 0 {
		e.retry = DefaultRetry
	}
	return e, nil
}

// token is the header that shows a token.
type token map[string]string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return t, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: on loopback, and
// behind what encrypts, a token goes without TLS.
func (t token) RequireTransportSecurity() bool { return false }

// Close ends the connection. Calls under way, and later ones, fail with
// store.ErrClosed. A second Close does nothing.
func (e *Events) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	return e.conn.Close()
}
