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

// window is how many bytes of a stream are received before the caller asks for
// them.
const window = 256 << 10

// Options configure a client. The zero value is for a service on loopback
// without a token.
type Options struct {
	// TLS secures the connection; nil means plain text, in which others may
	// read a token.
	TLS *tls.Config

	// Token is sent with every call; empty means none.
	Token string

	// Retry is how long a call is repeated after a failure of the service or
	// the connection. Only harmless calls are repeated: reads, and appends
	// whose events all have IDs. Zero means DefaultRetry; a negative value
	// turns repeating off. A subscription that has begun is continued without
	// limit.
	Retry time.Duration

	// Dial are further options for the connection.
	Dial []grpc.DialOption
}

// Events is the event store of a service. Its methods may be called from
// several goroutines, which share a connection. They fail like the methods of
// store.Events, with the same errors for errors.Is and errors.As. In addition
// they fail with store.ErrUnavailable when the service is not reached, and with
// store.ErrUnknownOutcome when an append was sent and not answered, because the
// connection broke or ctx ended (whose error is wrapped too). Such an append
// may or may not have been stored; if its events have IDs, repeat it to find
// out.
type Events struct {
	conn   *grpc.ClientConn
	rpc    varvev1.EventServiceClient
	retry  time.Duration
	closed atomic.Bool
}

var _ event.Checkpointer = (*Events)(nil)

// Dial returns a client of the service at a gRPC target, such as host:port. It
// does not wait for a connection: that is opened by the first call, and again
// after it is lost. A nil opts means the zero value. The caller closes the
// client.
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
		// Fixed windows, because to measure one gRPC would add a ping to every
		// exchange of small messages.
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(8 * window),
		grpc.WithDisableRetry(), // except of unsent calls; calls are repeated here
		// Pings detect a dead connection on which a subscription would stay
		// silent.
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

// token is the header with the token.
type token map[string]string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return t, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. A token
// may be sent without TLS, on loopback and behind a proxy that encrypts.
func (t token) RequireTransportSecurity() bool { return false }

// Close closes the connection. Running and later calls fail with
// store.ErrClosed. A second Close does nothing.
func (e *Events) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	return e.conn.Close()
}
