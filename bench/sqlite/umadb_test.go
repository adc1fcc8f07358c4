package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/serve"
	"github.com/varvedb/varve/client"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// BenchmarkBesideUmaDB asks UmaDB and our event store the same. Both sync an append before they answer. UmaDB is another
// process: its figures include gRPC on loopback, by a client that does not decode events. Ours is called in process
// (varve) and over gRPC (varve-grpc), with client and server in one process. Clients share a connection.
func BenchmarkBesideUmaDB(b *testing.B) {
	suite.Flags.Skip(b)
	systems := openBesideUmaDB(b, enrolment.Small)
	student := event.Tagged(event.NewTag("student_id", "student-1"))
	want := enrolment.Small.Count(student)
	for _, name := range []string{"umadb", "varve", "varve-grpc"} {
		for _, clients := range []int{1, 16} {
			b.Run(fmt.Sprintf("op=append-if/clients=%d/system=%s", clients, name), func(b *testing.B) {
				appends := enrolment.Writes{Clients: clients, Do: enrolment.AppendIfNew}
				res, err := appends.Run(b.Context(), systems[name], pace.Config{More: b.Loop})
				require.NoError(b, err)
				b.ReportMetric(float64(res.All().Quantile(50)), "p50-ns")
			})
		}
		b.Run("op=read/system="+name, func(b *testing.B) {
			for b.Loop() {
				if n, err := countEvents(b.Context(), systems[name], student); err != nil || n != want {
					b.Fatal(n, err)
				}
			}
		})
	}
}

// TestBesideUmaDB: all find the same and refuse the same, so that their times can be compared.
func TestBesideUmaDB(t *testing.T) {
	q := event.Typed("CourseDefined", event.NewTag("category", "Physics")).Or(event.Tagged(event.NewTag("student_id", "student-1")))
	for name, events := range openBesideUmaDB(t, enrolment.Tiny) {
		n, err := countEvents(t.Context(), events, q)
		require.NoError(t, err, name)
		require.Equal(t, enrolment.Tiny.Count(q), n, name)
		tags := []event.Tag{event.NewTag("student_id", "new by "+name)}
		batch, cond := []event.Event{{Type: "StudentRegistered", Tags: tags, Data: []byte("{}")}}, event.Unless(event.Tagged(tags...))
		at, err := events.Append(t.Context(), batch, cond)
		require.NoError(t, err, name)
		_, err = events.Append(t.Context(), batch, cond)
		require.ErrorIs(t, err, driver.ErrConflict, name)
		cond.After = at[0]
		_, err = events.Append(t.Context(), batch, cond)
		require.NoError(t, err, "%s: the event is known", name)
	}
}

func countEvents(ctx context.Context, events event.Store, q event.Query) (n int, err error) {
	for _, err = range events.Read(ctx, q, nil) { // an error is the last that comes
		n++
	}
	return n, err
}

// openBesideUmaDB fills UmaDB and our store with the same events. Both ways to ours lead to one database.
func openBesideUmaDB(tb testing.TB, data enrolment.Data) map[string]event.Store {
	peer := startUmaDB(tb)
	db, err := store.Open(tb.Context(), suite.Engine.URL(tb.TempDir()), &store.Options{Durability: driver.Durable})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, db.Close()) })
	local, err := db.Events(tb.Context(), nil)
	require.NoError(tb, err)
	for batch := range slices.Chunk(slices.Collect(data.Events()), 500) {
		require.NoError(tb, enrolment.Append(tb.Context(), local, batch))
		require.NoError(tb, enrolment.Append(tb.Context(), peer, batch))
	}
	svc, err := service.New(tb.Context(), db, service.Options{})
	require.NoError(tb, err)
	tb.Cleanup(svc.Close)
	srv, stop, err := serve.Listen(tb.Context(), svc, server.Options{REST: "off"})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, stop()) })
	remote, err := client.Dial(srv.GRPC(), nil)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, remote.Close()) })
	return map[string]event.Store{"umadb": peer, "varve": local, "varve-grpc": remote}
}

// umaDB calls UmaDB's service umadb.v1.DCB. The messages that it needs are encoded by hand.
type umaDB struct {
	event.Store // nil: there are no other methods
	conn        *grpc.ClientConn
}

func startUmaDB(tb testing.TB) umaDB {
	program, err := osexec.LookPath("umadb")
	if err != nil {
		tb.Skip("no umadb on the PATH: pip install umadb==0.7.8 puts it there")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // finds a free port
	require.NoError(tb, err)
	require.NoError(tb, l.Close())
	cmd := osexec.Command(program, "--listen", l.Addr().String(), "--db-path", filepath.Join(tb.TempDir(), "uma.db"), "--page-cache-max-mb", "512")
	cmd.Stderr = tb.Output()
	require.NoError(tb, cmd.Start())
	tb.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.WaitForReady(true)))
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, conn.Close()) })
	u := umaDB{conn: conn}
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	_, err = u.Head(ctx)
	require.NoError(tb, err, "start umadb")
	return u
}

func (u umaDB) Head(ctx context.Context) (uint64, error) { return u.position(ctx, "Head", nil) }

// Append returns the last position alone.
func (u umaDB) Append(ctx context.Context, events []event.Event, cond *event.Condition) ([]uint64, error) {
	var req []byte
	for _, e := range events {
		req = appendField(req, 1, appendField(encodeItem([]string{e.Type}, e.Tags), 3, e.Data))
	}
	if cond != nil {
		query := encodeQuery(cond.FailIfEventsMatch)
		req = appendField(req, 2, protowire.AppendVarint(protowire.AppendTag(query, 2, protowire.VarintType), cond.After))
	}
	last, err := u.position(ctx, "Append", req)
	return []uint64{last}, err
}

// position makes a call that answers with a position, or with nothing for 0. The Go library of gRPC
// takes a refusal for a broken answer, for its details are not in the form of a status.
func (u umaDB) position(ctx context.Context, method string, req []byte) (uint64, error) {
	var resp []byte
	err := u.conn.Invoke(ctx, "/umadb.v1.DCB/"+method, &req, &resp)
	if err != nil && strings.Contains(err.Error(), "integrity error: condition failed") {
		err = fmt.Errorf("%w: %w", driver.ErrConflict, err)
	}
	at, _ := protowire.ConsumeVarint(resp[min(1, len(resp)):]) // after the tag
	return at, err
}

// Read yields each event without its contents.
func (u umaDB) Read(ctx context.Context, q event.Query, _ *event.ReadOptions) iter.Seq2[event.Sequenced, error] {
	return func(yield func(event.Sequenced, error) bool) {
		stream, err := u.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/umadb.v1.DCB/Read")
		if err == nil {
			req := encodeQuery(q)
			err = errors.Join(stream.SendMsg(&req), stream.CloseSend())
		}
		for err == nil {
			var resp []byte
			err = stream.RecvMsg(&resp)
			for len(resp) > 0 {
				field, _, size := protowire.ConsumeField(resp)
				if resp = resp[size:]; field == 1 && !yield(event.Sequenced{}, nil) { // field 2 is the head
					return
				}
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(event.Sequenced{}, err)
		}
	}
}

// encodeQuery returns a message whose first field is a query, as a read and a condition have it.
func encodeQuery(q event.Query) (msg []byte) {
	for _, it := range q.Items {
		msg = appendField(msg, 1, encodeItem(it.Types, it.Tags))
	}
	return appendField(nil, 1, msg)
}

// encodeItem returns an item of a query, or the type and tags of an event, which are in the same fields.
func encodeItem(types []string, tags []event.Tag) (msg []byte) {
	for _, typ := range types {
		msg = appendField(msg, 1, []byte(typ))
	}
	for _, t := range tags {
		msg = appendField(msg, 2, []byte(t.Key+":"+t.Value))
	}
	return msg
}

func appendField(msg []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(msg, field, protowire.BytesType), value)
}

// rawCodec passes messages on as they are; each is a *[]byte.
type rawCodec struct{}

func (rawCodec) Name() string                       { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }
