package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/client"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/rpc"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// serveRPC serves a database by gRPC alone, with options of its server.
func serveRPC(t testing.TB, db *store.DB, o service.Serving, more ...grpc.ServerOption) string {
	t.Helper()
	s, err := service.New(context.Background(), db, service.Options{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	if o.Gate == nil {
		o.Gate, err = service.NewGate(service.GateOptions{})
		require.NoError(t, err)
	}
	srv := rpc.New(s, o, more...)
	on, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(on) }()
	t.Cleanup(func() {
		srv.Stop()
		require.NoError(t, <-done)
	})
	return on.Addr().String()
}

// TestErrors: a client gets the same errors as a caller in the service's
// process.
func TestErrors(t *testing.T) {
	conflict := &event.ConflictError{Position: 1 << 60, Item: 3, After: 7}
	truncated := &event.TruncatedError{Position: 5, Before: 9}
	kinds := map[error]error{
		fmt.Errorf("read events: %w", truncated): event.ErrTruncated, event.ErrCheckpoint: event.ErrCheckpoint,
		fmt.Errorf("append: %w", conflict): store.ErrConflict, event.ErrDuplicate: event.ErrDuplicate, store.ErrInvalid: store.ErrInvalid,
		store.ErrClosed: store.ErrClosed, store.ErrCorrupt: store.ErrCorrupt, store.ErrUnknownOutcome: store.ErrUnknownOutcome,
		driver.ErrDiskFull: driver.ErrDiskFull, store.ErrLocked: store.ErrLocked, store.ErrReaderExpired: store.ErrReaderExpired,
		store.ErrUnavailable: store.ErrUnavailable, store.ErrUnsupported: store.ErrUnsupported, store.ErrReadOnly: store.ErrReadOnly,
		service.ErrReadOnly: store.ErrReadOnly, service.ErrClosing: store.ErrClosed, service.ErrBusy: store.ErrUnavailable,
		service.ErrRate: store.ErrUnavailable, service.ErrTooLarge: store.ErrInvalid, service.ErrMalformed: store.ErrInvalid,
		service.ErrNoEvents: store.ErrUnsupported, seal.ErrTampered: store.ErrCorrupt, seal.ErrNotSealed: store.ErrCorrupt,
		service.ErrSlow: store.ErrUnavailable, context.DeadlineExceeded: store.ErrUnavailable, context.Canceled: store.ErrUnavailable,
		seal.ErrUnknownKey: nil, service.ErrUnauthenticated: nil, errors.New("internal"): nil,
	}
	var fails error
	db, _ := openDB(t, newURL(t))
	address := serveRPC(t, db, service.Serving{},
		grpc.ChainUnaryInterceptor(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) { return nil, fails }),
		grpc.ChainStreamInterceptor(func(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error { return fails }),
	)
	events := dial(t, address, client.Options{Retry: -1})
	for err, kind := range kinds {
		fails = err
		_, head := events.Head(t.Context())
		_, appended := events.Append(t.Context(), []event.Event{{Type: "A"}}, nil)
		var followed error
		for _, followed = range events.Subscribe(t.Context(), event.All(), 0) {
			require.Error(t, followed)
		}
		for _, got := range []error{head, appended, followed} {
			require.Error(t, got)
			require.NotEqual(t, codes.OK, status.Code(got))
			for _, other := range kinds {
				require.Equal(t, other != nil && errors.Is(kind, other), other != nil && errors.Is(got, other), "%v is %v", got, other)
			}
			if found := new(event.ConflictError); errors.As(got, &found) {
				require.Equal(t, conflict, found)
				require.ErrorContains(t, got, err.Error())
			} else if found := new(event.TruncatedError); errors.As(got, &found) {
				require.Equal(t, truncated, found)
			}
		}
	}
}

// TestCutStream: a stream that ends before its end is not taken for a whole one.
func TestCutStream(t *testing.T) {
	db, local := openDB(t, newURL(t))
	_, err := local.Append(t.Context(), numbered(0, 1000), nil)
	require.NoError(t, err)
	cuts := 0
	address := serveRPC(t, db, service.Serving{},
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if err := handle(srv, &cutting{stream}); !errors.Is(err, errCutting) {
				return err
			}
			cuts++
			return nil
		}),
	)
	want := collect(t, local.Read(t.Context(), event.All(), nil))
	require.Equal(t, want, collect(t, dial(t, address, client.Options{}).Read(t.Context(), event.All(), nil)))
	require.Positive(t, cuts)
	n := 0
	for _, err = range dial(t, address, client.Options{Retry: -1}).Read(t.Context(), event.All(), nil) {
		if err == nil {
			n++
		}
	}
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.Less(t, n, len(want))
}

var errCutting = errors.New("cut")

// cutting is a stream that ends after a message that is not the last one.
type cutting struct{ grpc.ServerStream }

func (s *cutting) SendMsg(m any) error {
	if err := s.ServerStream.SendMsg(m); err != nil || m.(*varvev1.ReadResponse).GetEnd() != nil {
		return err
	}
	return errCutting
}

// TestSlowSubscriber: a subscriber that takes nothing while thousands of events are
// appended costs the service no memory and no view of the store, and misses nothing.
func TestSlowSubscriber(t *testing.T) {
	const total, size = 6000, 8 << 10
	db, local := openDB(t, newURL(t))
	events := dial(t, serve(t, db, service.Options{}, server.Options{}), client.Options{})
	_, err := local.Append(t.Context(), []event.Event{{Type: "First"}}, nil)
	require.NoError(t, err)
	next := uint64(0)
	for e, err := range events.Subscribe(t.Context(), event.All(), 0) {
		require.NoError(t, err)
		next++
		require.Equal(t, next, e.Position)
		if next == 1 {
			before, goroutines := heap(), runtime.NumGoroutine()
			for n := 0; n < total; n += 100 {
				list := numbered(n, n+100)
				for i := range list {
					list[i].Data = make([]byte, size)
				}
				_, err := local.Append(t.Context(), list, nil)
				require.NoError(t, err)
			}
			require.Less(t, heap()-before, int64(total*size/4), "bytes for events that nobody takes")
			require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+3)
			done, err := driver.Checkpoint(t.Context(), db.Engine(), true)
			require.NoError(t, err, "nobody holds a view: %+v", done)
		}
		if next == total+1 {
			break
		}
	}
	require.EqualValues(t, total+1, next)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestClose: calls under way end when the client is closed.
func TestClose(t *testing.T) {
	db, _ := openDB(t, newURL(t))
	events := dial(t, serve(t, db, service.Options{}, server.Options{}), client.Options{})
	done := make(chan error)
	go func() {
		var last error
		for _, last = range events.Subscribe(context.Background(), event.All(), 0) {
			_ = last
		}
		done <- last
	}()
	_, err := events.Append(t.Context(), []event.Event{{Type: "A"}}, nil)
	require.NoError(t, err)
	require.NoError(t, events.Close())
	require.NoError(t, events.Close())
	require.ErrorIs(t, <-done, store.ErrClosed)
	_, err = events.Head(t.Context())
	require.ErrorIs(t, err, store.ErrClosed)
}

// TestSecured: with TLS and a token, and not without.
func TestSecured(t *testing.T) {
	known := httptest.NewTLSServer(nil) // for its certificate
	defer known.Close()
	roots := x509.NewCertPool()
	roots.AddCert(known.Certificate())
	db, _ := openDB(t, newURL(t))
	address := serve(t, db, service.Options{}, server.Options{
		Token: "a token for the tests", TLS: &tls.Config{Certificates: known.TLS.Certificates, MinVersion: tls.VersionTLS12},
	})
	secure := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	for _, c := range []struct {
		options client.Options
		code    codes.Code
	}{
		{client.Options{TLS: secure, Token: "a token for the tests"}, codes.OK},
		{client.Options{TLS: secure, Token: "another token, as long"}, codes.Unauthenticated},
		{client.Options{TLS: secure}, codes.Unauthenticated},
		{client.Options{Token: "a token for the tests"}, codes.Unavailable},
		{client.Options{TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Token: "a token for the tests"}, codes.Unavailable},
	} {
		c.options.Retry = -1
		_, err := dial(t, address, c.options).Head(t.Context())
		require.Equal(t, c.code, status.Code(err), "%v", err)
	}
}
