// Package accesslog gives requests their ids and writes a line of log for each.
package accesslog

import (
	"bufio"
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Header carries the id of a request: the client's own, or one that is made here. The
// answer has the same.
const Header = "X-Request-Id"

// maxID bounds the bytes of a client's id, so that it fills no log.
const maxID = 64

// entry is what a handler has to add to the line of its request.
type entry struct {
	mu    sync.Mutex
	attrs []slog.Attr
}

type contextKey struct{}

// Add adds to the line of the request that a context is of, if it has one.
func Add(ctx context.Context, attrs ...slog.Attr) {
	if e, ok := ctx.Value(contextKey{}).(*entry); ok {
		e.mu.Lock()
		e.attrs = append(e.attrs, attrs...)
		e.mu.Unlock()
	}
}

// Handler gives each request of another handler an id and, unless log is nil, logs it when
// it was answered. Of a connection that is taken over that is when it ends.
func Handler(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(Header)
		if !proper(id) {
			id = rand.Text()
		}
		w.Header()[Header] = []string{id}
		if log == nil {
			next.ServeHTTP(w, r)
			return
		}
		begun, e, answer := time.Now(), &entry{}, &answer{ResponseWriter: w}
		defer func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			log.LogAttrs(r.Context(), slog.LevelInfo, "request", append([]slog.Attr{
				slog.String("id", id), slog.String("from", r.RemoteAddr), slog.String("method", r.Method),
				slog.String("path", r.URL.Path), slog.Int("status", answer.status), slog.Int("bytes", answer.bytes),
				slog.Duration("took", time.Since(begun)),
			}, e.attrs...)...)
		}()
		next.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), contextKey{}, e)))
	})
}

// proper tells whether a client's id may go into headers and logs.
func proper(id string) bool {
	if id == "" || len(id) > maxID {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

// answer counts.
type answer struct {
	http.ResponseWriter
	status, bytes int
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(b)
	a.bytes += n
	return n, err
}

// Hijack implements http.Hijacker, which WebSocket asks for and does not look for below.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

// Unwrap lets http.ResponseController find the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
