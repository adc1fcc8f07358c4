package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/rpc"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/store"

	_ "github.com/varvedb/varve/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a service, and a connection to its interface.
type world struct {
	db       *store.DB
	server   *rpc.Server
	conn     *grpc.ClientConn
	entities varvev1.EntityServiceClient
	events   varvev1.EventServiceClient
	received *payloads
}

func newWorld(t testing.TB, so service.Options, ro service.Serving, more ...grpc.ServerOption) *world {
	t.Helper()
	return newWorldAt(t, "sqlite:"+filepath.Join(t.TempDir(), "varve.db")+"?durability=relaxed", so, ro, more...)
}

func newWorldAt(t testing.TB, url string, so service.Options, ro service.Serving, more ...grpc.ServerOption) *world {
	t.Helper()
	db, err := store.Open(context.Background(), url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	so.Keys, err = seal.New(bytes.Repeat([]byte{1}, seal.KeySize))
	require.NoError(t, err)
	s, err := service.New(context.Background(), db, so)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	if ro.Gate == nil {
		ro.Gate = newGate(t, service.GateOptions{})
	}
	server := rpc.New(s, ro, more...)
	listener := bufconn.Listen(1 << 16)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-done)
	})
	received := &payloads{}
	conn, err := grpc.NewClient("passthrough:///varve", grpc.WithStatsHandler(received), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return &world{db, server, conn, varvev1.NewEntityServiceClient(conn), varvev1.NewEventServiceClient(conn), received}
}

func newGate(t testing.TB, o service.GateOptions) *service.Gate {
	t.Helper()
	gate, err := service.NewGate(o)
	require.NoError(t, err)
	return gate
}

func key(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 32) }

func isCode(t testing.TB, want codes.Code, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, want, status.Code(err), "%v", err)
	require.NotEmpty(t, status.Convert(err).Message())
}

func TestEntities(t *testing.T) {
	ctx, w := t.Context(), newWorld(t, service.Options{}, service.Serving{})
	_, err := w.entities.Get(ctx, &varvev1.GetRequest{Key: key(1)})
	isCode(t, codes.NotFound, err)
	owner := bytes.Repeat([]byte{9}, 20)
	put := &varvev1.PutRequest{
		Key: key(1), ContentType: "text/plain", Payload: []byte("payload"), Lifetime: proto.Uint64(10), Owner: owner,
		StringAttributes: map[string]string{"a": "b"}, NumericAttributes: map[string]uint64{"n": 1<<64 - 1},
	}
	done, err := w.entities.Put(ctx, put)
	require.NoError(t, err)
	require.True(t, proto.Equal(&varvev1.PutResponse{Block: 1, Created: true, Expiration: 11}, done), "%v", done)
	got, err := w.entities.Get(ctx, &varvev1.GetRequest{Key: key(1)})
	require.NoError(t, err)
	require.True(t, proto.Equal(&varvev1.Entity{
		Key: key(1), Owner: owner, Creator: owner, ContentType: "text/plain", Payload: []byte("payload"),
		StringAttributes: put.StringAttributes, NumericAttributes: put.NumericAttributes,
		Sequence: 1 << 32, LastModifiedAtBlock: 1, Expiration: 11,
	}, got.GetEntity()), "%v", got)
	for _, guard := range []*varvev1.Guard{{Exists: proto.Bool(false)}, {LastModifiedAtBlock: []uint64{7}}} {
		_, err = w.entities.Put(ctx, &varvev1.PutRequest{Key: key(1), Guard: guard})
		isCode(t, codes.Aborted, err)
		_, err = w.entities.Delete(ctx, &varvev1.DeleteRequest{Key: key(1), Guard: guard})
		isCode(t, codes.Aborted, err)
	}
	_, err = w.entities.Put(ctx, &varvev1.PutRequest{Key: key(2), Guard: &varvev1.Guard{Exists: proto.Bool(true)}})
	isCode(t, codes.Aborted, err)
	gone, err := w.entities.Delete(ctx, &varvev1.DeleteRequest{Key: key(1), Guard: &varvev1.Guard{Exists: proto.Bool(true), LastModifiedAtBlock: []uint64{7, 1}}})
	require.NoError(t, err)
	require.Equal(t, uint64(2), gone.GetBlock())
	_, err = w.entities.Delete(ctx, &varvev1.DeleteRequest{Key: key(1)})
	isCode(t, codes.NotFound, err)
}

// TestTimeBounds: a bound of zero is one, and one that is left out is none.
func TestTimeBounds(t *testing.T) {
	ctx, w := t.Context(), newWorld(t, service.Options{}, service.Serving{})
	_, err := w.events.Append(ctx, &varvev1.AppendRequest{Events: []*varvev1.Event{{Type: "A"}}})
	require.NoError(t, err)
	year1 := proto.Int64(time.Time{}.UnixMicro())
	for _, c := range []struct {
		request *varvev1.ReadRequest
		events  int
	}{
		{&varvev1.ReadRequest{}, 1},
		{&varvev1.ReadRequest{Since: year1}, 1},
		{&varvev1.ReadRequest{Since: proto.Int64(0)}, 1},
		{&varvev1.ReadRequest{Until: year1}, 0},
		{&varvev1.ReadRequest{Until: proto.Int64(0)}, 0},
	} {
		stream, err := w.events.Read(ctx, c.request)
		require.NoError(t, err)
		got := 0
		for {
			answer, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			got += len(answer.GetEvents())
		}
		require.Equal(t, c.events, got, "%v", c.request)
	}
}

// TestOwnerStays: an owner is changed by a put, and not taken away.
func TestOwnerStays(t *testing.T) {
	ctx, w := t.Context(), newWorld(t, service.Options{}, service.Serving{})
	put := func(owner []byte) error {
		_, err := w.entities.Put(ctx, &varvev1.PutRequest{Key: key(1), Owner: owner})
		return err
	}
	nobody := make([]byte, 20)
	require.NoError(t, put(nobody))
	require.NoError(t, put(nil), "without one before")
	require.NoError(t, put(bytes.Repeat([]byte{9}, 20)))
	err := put(nobody)
	isCode(t, codes.InvalidArgument, err)
	require.ErrorContains(t, err, "Owner")
	require.NoError(t, put(nil))
}

// TestAccessLog: of requests with an answer, without one, and of streams.
func TestAccessLog(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, service.Options{}, service.Serving{Access: slog.New(slog.NewTextHandler(&log, nil))})
	const trace = "0af7651916cd43dd8448eb211c80319c"
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-"+trace+"-b7ad6b7169203331-01", "x-request-id", "mine")
	var header metadata.MD
	_, err := w.entities.Get(ctx, &varvev1.GetRequest{Key: key(1)}, grpc.Header(&header))
	isCode(t, codes.NotFound, err)
	require.Equal(t, []string{"mine"}, header["x-request-id"])
	require.Contains(t, log.String(), "id=mine trace_id="+trace+" from=bufconn method=/varve.v1.EntityService/Get status=NotFound took=")
	require.Contains(t, log.String(), " cached=false\n")
	log.Reset()
	stream, err := w.entities.Query(t.Context(), &varvev1.QueryRequest{Query: "*"})
	require.NoError(t, err)
	for err == nil {
		_, err = stream.Recv()
	}
	require.ErrorIs(t, err, io.EOF)
	header, err = stream.Header()
	require.NoError(t, err)
	w.server.GracefulStop() // the line is written after the answer
	require.Contains(t, log.String(), "id="+header["x-request-id"][0]+" from=bufconn method=/varve.v1.EntityService/Query status=OK")
	require.Contains(t, log.String(), " entities=0 block=0\n")
}

func TestStatusCodes(t *testing.T) {
	ctx, w := t.Context(), newWorld(t, service.Options{MaxPayload: 10}, service.Serving{})
	put := func(change func(r *varvev1.PutRequest)) error {
		r := &varvev1.PutRequest{Key: key(1)}
		change(r)
		_, err := w.entities.Put(ctx, r)
		return err
	}
	isCode(t, codes.InvalidArgument, put(func(r *varvev1.PutRequest) { r.Key = nil }))
	isCode(t, codes.InvalidArgument, put(func(r *varvev1.PutRequest) { r.Owner = []byte("me") }))
	isCode(t, codes.InvalidArgument, put(func(r *varvev1.PutRequest) { r.Lifetime = proto.Uint64(0) }))
	isCode(t, codes.InvalidArgument, put(func(r *varvev1.PutRequest) { r.StringAttributes = map[string]string{"$key": ""} }))
	isCode(t, codes.ResourceExhausted, put(func(r *varvev1.PutRequest) { r.Payload = make([]byte, 11) }))
	isCode(t, codes.ResourceExhausted, put(func(r *varvev1.PutRequest) { r.Payload = make([]byte, 70_000) }))
	query := func(r *varvev1.QueryRequest) error {
		stream, err := w.entities.Query(ctx, r)
		require.NoError(t, err)
		_, err = stream.Recv()
		return err
	}
	isCode(t, codes.InvalidArgument, query(&varvev1.QueryRequest{Query: "("}))
	isCode(t, codes.InvalidArgument, query(&varvev1.QueryRequest{Query: "*", Cursor: "x"}))
	isCode(t, codes.InvalidArgument, query(&varvev1.QueryRequest{Query: "*", Order: []*varvev1.Order{{Name: "a", Kind: 7}}}))
	isCode(t, codes.OutOfRange, query(&varvev1.QueryRequest{Query: "*", Block: proto.Uint64(99)}))
	events := []*varvev1.Event{{Type: "A", Tags: []*varvev1.Tag{{Key: "a", Value: "b"}}, Data: []byte("d"), Id: key(1)[:16]}}
	done, err := w.events.Append(ctx, &varvev1.AppendRequest{Events: events})
	require.NoError(t, err)
	require.Equal(t, []uint64{1}, done.GetPositions())
	_, err = w.events.Append(ctx, &varvev1.AppendRequest{Events: []*varvev1.Event{{Type: "A", Id: []byte("x")}}})
	isCode(t, codes.InvalidArgument, err)
	_, err = w.events.Append(ctx, &varvev1.AppendRequest{Events: []*varvev1.Event{{Type: "B", Id: key(1)[:16]}}})
	isCode(t, codes.AlreadyExists, err)
	_, err = w.events.Append(ctx, &varvev1.AppendRequest{Events: []*varvev1.Event{{Type: "B"}}, Condition: &varvev1.Condition{
		FailIfEventsMatch: &varvev1.EventQuery{Items: []*varvev1.EventItem{{Types: []string{"A"}, Tags: events[0].GetTags()}}},
	}})
	isCode(t, codes.Aborted, err)
}

func TestQuery(t *testing.T) {
	ctx, w := t.Context(), newWorld(t, service.Options{}, service.Serving{Timeouts: service.Timeouts{Work: time.Minute}})
	const n = 15
	for i := range n {
		_, err := w.entities.Put(ctx, &varvev1.PutRequest{Key: key(i), NumericAttributes: map[string]uint64{"i": uint64(i)}})
		require.NoError(t, err)
	}
	r := &varvev1.QueryRequest{Query: "*", Order: []*varvev1.Order{{Name: "$owner"}, {Name: "i", Kind: varvev1.Order_KIND_NUMERIC}}, Limit: 10}
	for i := 0; i < n; {
		stream, err := w.entities.Query(ctx, r)
		require.NoError(t, err)
		var page *varvev1.Page
		for begun := i; page == nil; {
			m, err := stream.Recv()
			require.NoError(t, err)
			if page = m.GetPage(); page != nil {
				require.EqualValues(t, i-begun, page.GetCount())
				break
			}
			require.EqualValues(t, i, m.GetEntity().GetNumericAttributes()["i"])
			i++
		}
		_, err = stream.Recv()
		require.ErrorIs(t, err, io.EOF, "the page is the last message")
		require.Equal(t, i == n, page.GetCursor() == "")
		r.Cursor = page.GetCursor()
	}
}

func TestGate(t *testing.T) {
	gate := newGate(t, service.GateOptions{Token: "a token for the tests", Concurrent: 1})
	ctx, w := t.Context(), newWorld(t, service.Options{}, service.Serving{Gate: gate})
	get := func(header ...string) error {
		_, err := w.entities.Get(metadata.AppendToOutgoingContext(ctx, header...), &varvev1.GetRequest{Key: key(1)})
		return err
	}
	isCode(t, codes.Unauthenticated, get())
	isCode(t, codes.Unauthenticated, get("authorization", "Bearer another token"))
	isCode(t, codes.Unauthenticated, get("authorization", "Bearer a token for the tests", "authorization", "x"))
	isCode(t, codes.NotFound, get("authorization", "Bearer a token for the tests"))
	stream, err := w.entities.Query(ctx, &varvev1.QueryRequest{Query: "*"})
	require.NoError(t, err)
	_, err = stream.Recv()
	isCode(t, codes.Unauthenticated, err)
	leave, err := gate.Enter(false)
	require.NoError(t, err)
	isCode(t, codes.Unavailable, get("authorization", "Bearer a token for the tests"))
	leave()
	health, err := healthpb.NewHealthClient(w.conn).Check(ctx, &healthpb.HealthCheckRequest{})
	require.NoError(t, err, "health needs no token")
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, health.GetStatus())
	watch, err := healthpb.NewHealthClient(w.conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = watch.Recv()
	isCode(t, codes.Unauthenticated, err)
	definitions, err := reflectionpb.NewServerReflectionClient(w.conn).ServerReflectionInfo(ctx)
	require.NoError(t, err)
	_, err = definitions.Recv()
	isCode(t, codes.Unauthenticated, err)
}

// payloads counts the bytes of the last message that a client received, as they came.
type payloads struct {
	handler
	bytes atomic.Int64
}

// HandleRPC implements stats.Handler.
func (p *payloads) HandleRPC(_ context.Context, event stats.RPCStats) {
	if m, ok := event.(*stats.InPayload); ok {
		p.bytes.Store(int64(m.CompressedLength))
	}
}

// handler is a stats.Handler without statistics.
type handler struct{}

func (handler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (handler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (handler) HandleConn(context.Context, stats.ConnStats)                       {}

// faulty panics when a delete is received.
type faulty struct{ handler }

type faultyKey struct{}

// TagRPC implements stats.Handler.
func (faulty) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, faultyKey{}, info.FullMethodName)
}

// HandleRPC implements stats.Handler.
func (faulty) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, ok := event.(*stats.InPayload); ok && ctx.Value(faultyKey{}) == "/varve.v1.EntityService/Delete" {
		panic("a fault of the program")
	}
}

// TestPanic: a request that panics fails alone, and gives its place back.
func TestPanic(t *testing.T) {
	gate := newGate(t, service.GateOptions{Concurrent: 1})
	w := newWorld(t, service.Options{}, service.Serving{Gate: gate}, grpc.StatsHandler(faulty{}))
	for range 2 {
		_, err := w.entities.Delete(t.Context(), &varvev1.DeleteRequest{Key: key(1)})
		isCode(t, codes.Internal, err)
		_, err = w.entities.Get(t.Context(), &varvev1.GetRequest{Key: key(1)})
		isCode(t, codes.NotFound, err)
	}
}

// FuzzPut: no message makes the interface answer with anything but a write or a
// fault of the client's.
func FuzzPut(f *testing.F) {
	w := newWorld(f, service.Options{MaxPayload: 1000}, service.Serving{})
	for _, r := range []*varvev1.PutRequest{
		{Key: key(1), Payload: []byte("p"), StringAttributes: map[string]string{"a": "b"}, Lifetime: proto.Uint64(1)},
		{Key: key(2), Owner: key(1)[:20], NumericAttributes: map[string]uint64{"": 1}},
		{Key: key(1), Lifetime: proto.Uint64(0), Guard: &varvev1.Guard{Exists: proto.Bool(true), LastModifiedAtBlock: []uint64{7}}},
	} {
		b, err := proto.Marshal(r)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := new(varvev1.PutRequest)
		if proto.Unmarshal(data, r) != nil {
			return // gRPC refuses it
		}
		_, err := w.entities.Put(context.Background(), r)
		require.Contains(t, []codes.Code{codes.OK, codes.InvalidArgument, codes.ResourceExhausted, codes.Aborted}, status.Code(err), "%v", err)
	})
}

// TestDecodedSize: the size of a decoded message is checked before decoding,
// also when few bytes came. The lists are longer than any that the store takes.
func TestDecodedSize(t *testing.T) {
	ctx, w := t.Context(), newWorld(t, service.Options{}, service.Serving{})
	_, err := w.events.Append(ctx, &varvev1.AppendRequest{Events: slices.Repeat([]*varvev1.Event{{}}, 2_000_000)}, grpc.UseCompressor(gzip.Name))
	isCode(t, codes.ResourceExhausted, err)
	require.ErrorContains(t, err, "cut the request")
	// As many lists as are allowed, each within its limit.
	tags := slices.Repeat([]*varvev1.Tag{{}}, 90_000)
	_, err = w.events.Append(ctx, &varvev1.AppendRequest{Events: slices.Repeat([]*varvev1.Event{{Tags: tags}}, 10)})
	isCode(t, codes.ResourceExhausted, err)
	_, err = w.entities.Put(ctx, &varvev1.PutRequest{Key: key(1), Guard: &varvev1.Guard{LastModifiedAtBlock: make([]uint64, 3_000_000)}})
	isCode(t, codes.ResourceExhausted, err)
	read, err := w.events.Read(ctx, &varvev1.ReadRequest{Query: &varvev1.EventQuery{Items: slices.Repeat([]*varvev1.EventItem{{}}, 1_000_000)}})
	require.NoError(t, err)
	_, err = read.Recv()
	isCode(t, codes.ResourceExhausted, err)
	// What fits is taken.
	done, err := w.events.Append(ctx, &varvev1.AppendRequest{Events: slices.Repeat([]*varvev1.Event{{Type: "A"}}, 100_000)}, grpc.UseCompressor(gzip.Name))
	require.NoError(t, err)
	require.Len(t, done.GetPositions(), 100_000)
}

// TestAnswersAreNotCompressed: gRPC does not say when a compressed message was taken, so its memory
// could not be counted.
func TestAnswersAreNotCompressed(t *testing.T) {
	w := newWorld(t, service.Options{}, service.Serving{})
	_, err := w.entities.Put(t.Context(), &varvev1.PutRequest{Key: key(1), Payload: make([]byte, 100_000)})
	require.NoError(t, err)
	got, err := w.entities.Get(t.Context(), &varvev1.GetRequest{Key: key(1)}, grpc.UseCompressor(gzip.Name))
	require.NoError(t, err)
	require.Len(t, got.GetEntity().GetPayload(), 100_000)
	require.Greater(t, w.received.bytes.Load(), int64(100_000))
}
