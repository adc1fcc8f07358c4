//go:build !race

// The race detector needs additional memory.

package server_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
	arkivrpc "github.com/varvedb/varve/node/rpc"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
)

const (
	// attackEnv makes of this program the server that is attacked; its value is the token.
	attackEnv = "VARVE_TEST_ATTACKED"

	attackers    = 200       // requests of a kind at a time
	attackMemory = 100 << 20 // that they may cost together
	attackTime   = 30 * time.Second

	payloads, payloadBytes = 8, 4_000_000
)

// TestAttack: as many requests as attackers, of any kind, that are not finished
// or whose answers are not taken, cost little memory and end. The server is a
// separate process, whose resident memory is watched. Meanwhile it reports that
// it is ready, and afterwards it serves.
func TestAttack(t *testing.T) {
	if of, ok := os.LookupEnv(attackEnv); ok {
		layout, token, _ := strings.Cut(of, " ")
		serveAttacked(t, layout, token)
		return
	}
	t.Parallel()
	places := make(chan struct{}, 4) // servers at a time: they wait for the most part
	var wg sync.WaitGroup
	defer wg.Wait()
	attack := func(name, layout, token string, n int, kind attackKind) {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			t.Run(name, func(t *testing.T) { startAttacked(t, layout, token).attack(t, kind, n) })
		})
	}
	for _, kind := range attackKinds {
		attack(kind.name, "compact", "", attackers, kind)
		if kind.name == "gRPC query" {
			attack(kind.name+" of another layout", "arkiv", "", attackers, kind)
		}
	}
	attack("all without the token", "compact", attackToken, 6*attackers, attackKind{"any kind", func(a *attacked, n int, idle func()) error {
		return attackKinds[n%len(attackKinds)].do(a, n, idle)
	}})
}

// serveAttacked serves a store with large entities and many events, with short times.
func serveAttacked(t *testing.T, layout, token string) {
	ctx := t.Context()
	db, err := store.Open(ctx, newURL(t)+"?durability=unsafe", &store.Options{Memory: 4 << 20})
	require.NoError(t, err)
	ents, err := db.Entities(ctx, &store.EntityOptions{Layout: layout})
	require.NoError(t, err)
	s, err := service.New(ctx, db, service.Options{CacheBytes: -1})
	require.NoError(t, err)
	for i := range payloads {
		_, err := s.Put(ctx, &service.Put{Key: entity.Key{31: byte(i)}, Payload: bytes.Repeat([]byte{byte('a' + i)}, payloadBytes)})
		require.NoError(t, err)
	}
	for i := range 30 {
		size := 60_000
		if i%2 == 0 {
			size = 1_000_000
		}
		_, err := s.Events().Append(ctx, []event.Event{{Type: "A", Data: bytes.Repeat([]byte("e"), size)}}, nil)
		require.NoError(t, err)
	}
	const short = 2 * time.Second
	arkiv, err := arkivrpc.New(ctx, ents, arkivrpc.Options{Limits: arkivrpc.Limits{Send: short, Receive: short}})
	require.NoError(t, err)
	srv, err := server.Listen(ctx, s, server.Options{
		Token: token, Site: &server.Site{Name: "Arkiv", Handler: arkiv},
		Timeouts: service.Timeouts{Read: short, Write: short},
	})
	require.NoError(t, err)
	debug.FreeOSMemory() // of the loading
	fmt.Printf("serving %s %s %s\n", srv.REST(), srv.GRPC(), srv.Site())
	require.NoError(t, srv.Run(context.Background()))
}

// attacked is a server in a separate process.
type attacked struct {
	rest, grpc, arkiv string
	pid               int
	client            *http.Client
}

func startAttacked(t *testing.T, layout, token string) *attacked {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestAttack$")
	child.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), attackEnv+"="+layout+" "+token, "GOGC=", "GOMEMLIMIT=") // the defaults
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	a := &attacked{pid: child.Process.Pid, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: attackTime}}
	t.Cleanup(func() {
		require.NoError(t, child.Process.Kill())
		_ = child.Wait() // it was killed
	})
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "%v", lines.Err())
	n, err := fmt.Sscanf(lines.Text(), "serving %s %s %s", &a.rest, &a.grpc, &a.arkiv)
	require.NoError(t, err, lines.Text())
	require.Equal(t, 3, n)
	return a
}

// resident returns the memory of the server.
func (a *attacked) resident(t *testing.T) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.pid))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "VmRSS:")
	require.True(t, ok)
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return n << 10
}

// attackKind is a request that is not finished, or whose answer is not taken while it is idle.
type attackKind struct {
	name string
	do   func(a *attacked, n int, idle func()) error
}

var attackKinds = []attackKind{
	{"REST put", func(a *attacked, n int, idle func()) error {
		return raw(a.rest, idle, fmt.Sprintf("PUT /v1/entities/0x%064x/payload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", 1000+n, payloadBytes), payloadBytes-1)
	}},
	{"REST get", func(a *attacked, n int, idle func()) error {
		return raw(a.rest, idle, fmt.Sprintf("GET /v1/entities/0x%064x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", n%payloads), 0)
	}},
	{"REST query", func(a *attacked, _ int, idle func()) error {
		return raw(a.rest, idle, post("/v1/query", `{"query":"*"}`), 0)
	}},
	{"REST events", func(a *attacked, _ int, idle func()) error {
		return raw(a.rest, idle, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 0)
	}},
	{"REST subscribe", func(a *attacked, _ int, idle func()) error {
		return raw(a.rest, idle, "GET /v1/events/subscribe?from=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 0)
	}},
	{"gRPC put", func(a *attacked, n int, idle func()) error {
		m, _ := proto.Marshal(&varvev1.PutRequest{Key: bytes.Repeat([]byte{byte(n)}, 32), Payload: payload})
		return overHTTP2(a.grpc, "varve.v1.EntityService/Put", "", m, 1, idle)
	}},
	{"gRPC get", func(a *attacked, n int, idle func()) error {
		m, _ := proto.Marshal(&varvev1.GetRequest{Key: append(make([]byte, 31), byte(n%payloads))})
		return overHTTP2(a.grpc, "varve.v1.EntityService/Get", "", m, 0, idle)
	}},
	{"gRPC query", func(a *attacked, _ int, idle func()) error {
		m, _ := proto.Marshal(&varvev1.QueryRequest{Query: "*"})
		return overHTTP2(a.grpc, "varve.v1.EntityService/Query", "", m, 0, idle)
	}},
	{"gRPC subscribe", func(a *attacked, _ int, idle func()) error {
		return overHTTP2(a.grpc, "varve.v1.EventService/Subscribe", "", nil, 0, idle)
	}},
	{"gRPC health", func(a *attacked, _ int, idle func()) error {
		m := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), payload)
		return overHTTP2(a.grpc, "grpc.health.v1.Health/Watch", "", m, 1, idle)
	}},
	{"JSON-RPC request", func(a *attacked, _ int, idle func()) error {
		return raw(a.arkiv, idle, "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n", 999_999)
	}},
	{"JSON-RPC batch", func(a *attacked, _ int, idle func()) error { return raw(a.arkiv, idle, post("/", batch), 0) }},
	{"REST empty events", func(a *attacked, _ int, idle func()) error { return raw(a.rest, idle, emptyEvents, 0) }},
	{"REST events to append", func(a *attacked, _ int, idle func()) error { return raw(a.rest, idle, manyEvents, 0) }},
	{"gRPC empty events", func(a *attacked, _ int, idle func()) error {
		return overHTTP2(a.grpc, "varve.v1.EventService/Append", "gzip", emptyAppend(), 0, idle)
	}},
	{"gRPC events to append", func(a *attacked, _ int, idle func()) error {
		return overHTTP2(a.grpc, "varve.v1.EventService/Append", "gzip", manyAppend(), 0, idle)
	}},
	{"JSON-RPC numbers", func(a *attacked, _ int, idle func()) error { return raw(a.arkiv, idle, post("/", numbers), 0) }},
	{"JSON-RPC parameters", func(a *attacked, _ int, idle func()) error {
		return raw(a.arkiv, idle, post("/", `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":`+numbers+`}`), 0)
	}},
	{"JSON-RPC topics", func(a *attacked, _ int, idle func()) error {
		return raw(a.arkiv, idle, post("/", `{"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{"topics":`+numbers+`}]}`), 0)
	}},
	{"WebSocket subscriptions", func(a *attacked, _ int, idle func()) error {
		return overWebSocket(a.arkiv, "", []byte(subscriptions), idle)
	}},
	{"WebSocket message", func(a *attacked, _ int, idle func()) error {
		return overWebSocket(a.arkiv, string(payload[:1<<20-1]), nil, idle)
	}},
	{"WebSocket batch", func(a *attacked, _ int, idle func()) error { return overWebSocket(a.arkiv, "", []byte(batch), idle) }},
}

var (
	payload       = bytes.Repeat([]byte("x"), payloadBytes)
	batch         = "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"arkiv_query","params":["*",{"includeData":{"payload":true},"resultsPerPage":"0x1"}]},`, 100), ",") + "]"
	subscriptions = "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]},`, 32), ",") + "]"
	numbers       = "[" + strings.Repeat("1,", 500_000) + "1]"
	emptyEvents   = post("/v1/events", `{"events":[`+strings.Repeat("{},", 2_200_000)+`{}]}`)
	manyEvents    = post("/v1/events", `{"events":[`+strings.TrimSuffix(strings.Repeat(`{"type":"","tags":[["a","b"]]},`, 50_000), ",")+`]}`)
	tagged        = []*varvev1.Tag{{Key: "a", Value: "b"}}

	emptyAppend = sync.OnceValue(func() []byte { return compressed(2_000_000, nil) })
	manyAppend  = sync.OnceValue(func() []byte { return compressed(event.MaxEvents, tagged) })
)

// compressed is an append of so many events without a type, as few bytes.
func compressed(n int, tags []*varvev1.Tag) []byte {
	m, _ := proto.Marshal(&varvev1.AppendRequest{Events: slices.Repeat([]*varvev1.Event{{Tags: tags}}, n)})
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(m)
	_ = w.Close()
	return b.Bytes()
}

func post(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// raw sends a head and as many bytes after it, waits, and reads until the server has ended it.
func raw(address string, idle func(), head string, more int) error {
	conn, err := small(context.Background(), address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(attackTime)); err != nil {
		return err
	}
	// The server need not read a refused request.
	if _, err := io.WriteString(conn, head); err == nil && more > 0 {
		_, _ = conn.Write(payload[:more])
	}
	idle()
	return nil
}

// overHTTP2 makes a call of gRPC with missing bytes, by hand: gRPC's own client
// would take the answer.
func overHTTP2(address, method, encoding string, message []byte, missing int, idle func()) error {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		DisableKeepAlives: true, Protocols: protocols, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return small(ctx, address) },
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 64 << 10},
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), attackTime)
	defer cancel()
	flag := []byte{0}
	if encoding != "" {
		flag[0] = 1
	}
	framed := append(binary.BigEndian.AppendUint32(flag, uint32(len(message))), message...)
	body, in := io.Pipe()
	go func() {
		_, _ = in.Write(framed[:len(framed)-missing]) // until the server has ended it
		if missing == 0 {
			_ = in.Close()
		}
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/"+method, body)
	if err != nil {
		return err
	}
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	if encoding != "" {
		r.Header.Set("Grpc-Encoding", encoding)
	}
	// Who is refused leaves; who is answered does not take it.
	if answer, err := transport.RoundTrip(r); err == nil && missing == 0 {
		idle()
		_ = answer.Body.Close()
	}
	return nil
}

// overWebSocket sends a part of a message, or a whole one without taking the
// answer.
func overWebSocket(address, part string, whole []byte, idle func()) error {
	ctx, cancel := context.WithTimeout(context.Background(), attackTime)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return small(ctx, address) }}}
	conn, _, err := websocket.Dial(ctx, "ws://"+address, &websocket.DialOptions{HTTPClient: client}) //nolint:bodyclose // the library has closed it
	if err != nil {
		idle()
		return nil // refused, as it has to be without the token
	}
	defer func() { _ = conn.CloseNow() }() // the server may have closed it
	conn.SetReadLimit(-1)
	if whole != nil {
		err = conn.Write(ctx, websocket.MessageText, whole)
	} else {
		var w io.WriteCloser
		if w, err = conn.Writer(ctx, websocket.MessageText); err == nil {
			_, err = io.WriteString(w, part)
		}
	}
	if err != nil {
		return err
	}
	idle()
	return nil
}

// attack makes the requests, watches memory, and waits for their end.
func (a *attacked) attack(t *testing.T, kind attackKind, attackers int) {
	a.ready(t)
	before, usual := a.resident(t), a.goroutines(t)
	watch := a.watch(t)
	begun := time.Now()
	over := make(chan struct{})
	var wg sync.WaitGroup
	errs := make([]error, attackers)
	for n := range attackers {
		wg.Go(func() { errs[n] = kind.do(a, n, func() { <-over }) })
	}
	time.Sleep(time.Second) // until they are under way; if they are not, they come later
	for a.ready(t); a.goroutines(t) > usual+attackers/10 && time.Since(begun) < attackTime+10*time.Second; {
		time.Sleep(100 * time.Millisecond)
	}
	took, most := time.Since(begun), watch()
	close(over)
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	t.Logf("%d of %s: %d MB before, %d MB more at most, %s", attackers, kind.name, before>>20, (most-before)>>20, took.Round(100*time.Millisecond))
	require.Less(t, most-before, attackMemory, "of memory")
	require.Less(t, took, attackTime)
	a.serves(t)
}

// goroutines returns how many the server has: each request has one.
func (a *attacked) goroutines(t *testing.T) int {
	t.Helper()
	_, rest, ok := strings.Cut(a.get(t, "/metrics"), "\ngo_goroutines ")
	require.True(t, ok)
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return n
}

// watch looks at the memory until the function that it returns is called, which returns the most.
func (a *attacked) watch(t *testing.T) (end func() int) {
	stop, most := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				most <- n
				return
			case <-time.After(20 * time.Millisecond):
				n = max(n, a.resident(t))
			}
		}
	}()
	end = sync.OnceValue(func() int { close(stop); return <-most })
	t.Cleanup(func() { end() })
	return end
}

func (a *attacked) ready(t *testing.T) { a.get(t, "/readyz") }

// get asks the server something about itself. On a machine that is busy with the attack the head of
// the request may be late, and the connection closed.
func (a *attacked) get(t *testing.T, path string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+a.rest+path, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+attackToken)
	resp, err := a.client.Do(r)
	for try := 0; errors.Is(err, io.EOF) && try < 3; try++ {
		resp, err = a.client.Do(r)
	}
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}

// serves writes and reads large entities and events.
func (a *attacked) serves(t *testing.T) {
	t.Helper()
	url := fmt.Sprintf("http://%s/v1/entities/0x%064x", a.rest, 9999)
	do := func(method, url string, body io.Reader) *http.Response {
		r, err := http.NewRequest(method, url, body)
		require.NoError(t, err)
		r.Header.Set("Content-Type", "text/plain")
		r.Header.Set("Authorization", "Bearer "+attackToken)
		resp, err := a.client.Do(r)
		require.NoError(t, err)
		return resp
	}
	resp := do(http.MethodPut, url+"/payload", bytes.NewReader(payload))
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusCreated, resp.StatusCode)
	resp = do(http.MethodGet, url, nil)
	defer resp.Body.Close()
	var e struct{ Payload []byte }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&e))
	require.Len(t, e.Payload, payloadBytes)
}
