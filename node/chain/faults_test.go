package chain_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/node/chain/chaintest"
	"github.com/varvedb/varve/store/entity"
)

// fault writes something in the place of a whole answer.
type fault func(w http.ResponseWriter, whole []byte)

// faults are the faults of answers, and the error of a client, after a number
// of calls of an attempt, for a lasting fault.
var faults = []struct {
	spoil           fault
	attempts, calls int
	cause           error
	text            string
}{
	{spoil: status(http.StatusTooManyRequests), attempts: 3, calls: 1, text: "429"},
	{spoil: status(http.StatusServiceUnavailable), attempts: 3, calls: 1, text: "503"},
	{spoil: truncate, attempts: 3, calls: 1, text: "unexpected EOF"},
	{spoil: func(w http.ResponseWriter, _ []byte) { _, _ = w.Write([]byte("<html>")) }, attempts: 3, calls: 1, cause: chain.ErrAnswer},
	{spoil: func(http.ResponseWriter, []byte) { panic(http.ErrAbortHandler) }, attempts: 3, calls: 1, text: "EOF"},
	{spoil: results(func([]any) any { return nil }), attempts: 3, calls: 3, cause: chain.ErrReceipts},
	{spoil: results(func(receipts []any) any { return receipts[min(1, len(receipts)):] }), attempts: 3, calls: 3, cause: chain.ErrReceipts},
	{spoil: results(ofAnotherBlock), attempts: 3, calls: 3, cause: chain.ErrReceipts},
	{spoil: results(func(map[string]any) any { return nil }), attempts: 3, calls: 3, cause: chain.ErrReceipts},
	{spoil: status(http.StatusUnauthorized), attempts: 1, calls: 1, cause: chain.ErrRefused},
}

func status(code int) fault { return func(w http.ResponseWriter, _ []byte) { w.WriteHeader(code) } }

func truncate(w http.ResponseWriter, whole []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(whole)))
	_, _ = w.Write(whole[:len(whole)/2])
}

func ofAnotherBlock(receipts []any) any {
	for _, r := range receipts {
		r.(map[string]any)["blockHash"] = entity.Hash{}.String()
	}
	return receipts
}

// results changes the results of a kind: lists are receipts, objects are blocks.
func results[T any](change func(T) any) fault {
	return func(w http.ResponseWriter, whole []byte) {
		list, batch := answers(whole)
		for _, a := range list {
			if result, ok := a["result"].(T); ok {
				a["result"] = change(result)
			}
		}
		write(w, list, batch)
	}
}

func answers(whole []byte) (list []map[string]any, batch bool) {
	if json.Unmarshal(whole, &list) == nil {
		return list, true
	}
	list = make([]map[string]any, 1)
	return list, json.Unmarshal(whole, &list[0]) != nil
}

func write(w http.ResponseWriter, list []map[string]any, batch bool) {
	if batch {
		_ = json.NewEncoder(w).Encode(list)
		return
	}
	_ = json.NewEncoder(w).Encode(list[0])
}

// limit is what an execution client takes for too much, and how it says so.
type limit struct {
	calls int // of a request; 1 means that a batch is refused, also one of a single call
	bytes int // of an answer

	status  int    // of HTTP; zero: 200, with an error
	code    int    // of that error
	message string // of it
	partly  bool   // the calls as far as the answer goes are answered, the others have the error
}

// answer is a fault where something is too much.
func (l limit) answer(w http.ResponseWriter, whole []byte) {
	list, batch := answers(whole)
	many := batch && l.calls > 0 && (len(list) > l.calls || l.calls == 1)
	if !many && (l.bytes == 0 || len(whole) <= l.bytes) {
		_, _ = w.Write(whole)
		return
	}
	if l.status != 0 {
		w.WriteHeader(l.status)
		return
	}
	wrong := map[string]any{"code": l.code, "message": l.message}
	if !l.partly || !batch {
		write(w, []map[string]any{{"id": nil, "error": wrong}}, false)
		return
	}
	size := 0
	for i, a := range list {
		text, _ := json.Marshal(a) // it was JSON
		if size += len(text); i >= l.calls && l.calls > 0 || size > l.bytes && l.bytes > 0 {
			list[i] = map[string]any{"id": a["id"], "error": wrong}
		}
	}
	write(w, list, batch)
}

// spoiled is a chain with faults.
type spoiled struct {
	*chaintest.Chain

	mu    sync.Mutex
	fault func(n int) fault // of the nth request, from 0; nil: none
	n     int
}

// spoil changes the faults, and counts requests from here on.
func (s *spoiled) spoil(f func(n int) fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.n = f, 0
}

func (s *spoiled) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

func (s *spoiled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var f fault
	if s.fault != nil {
		f = s.fault(s.n)
	}
	s.n++
	if f == nil {
		s.Chain.ServeHTTP(w, r)
		return
	}
	whole := httptest.NewRecorder()
	s.Chain.ServeHTTP(whole, r)
	f(w, whole.Body.Bytes())
}

// serve returns a client of a chain that repeats requests without waiting.
func serve(t testing.TB, c http.Handler) *chain.Client {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return &chain.Client{URL: server.URL, Pause: func(ctx context.Context, _ int, _ time.Duration) error { return ctx.Err() }}
}
