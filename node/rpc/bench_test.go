package rpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

var (
	benchScale   = flag.Float64("varve.rpc.scale", 0.005, "size of the store of BenchmarkServe; 1 is 800,000 entities")
	benchClients = flag.Int("varve.rpc.clients", 32, "clients of BenchmarkServe")
	benchLayout  = flag.String("varve.rpc.layout", "compact", "layout of BenchmarkServe")
)

// BenchmarkServe answers arkiv_query over loopback, of many clients: by key, as getEntity
// of the SDKs asks it, and mix A.
func BenchmarkServe(b *testing.B) {
	n := newStore(b, *benchLayout)
	blocks := bench.Merged(scaler.Stream(scaler.Mendoza(), scaler.Options{Scale: *benchScale, Seed: 1}), 2000)
	oracle := mix.NewOracle()
	require.NoError(b, oracle.Follow(blocks))
	_, err := n.ents.Load(b.Context(), blocks, store.LoadOptions{})
	require.NoError(b, err)
	require.NoError(b, n.ents.Settle(b.Context()))
	n.serve(b, Options{})
	reads, err := mix.New(mix.A, oracle)
	require.NoError(b, err)
	draw, random := reads.Stream(mix.StreamOptions{}), rand.New(rand.NewPCG(1, 2))
	var byKey, mixed [][]byte
	for len(byKey) < 20_000 || len(mixed) < 20_000 {
		op := draw(random)
		if op.Key != (entity.Key{}) && op.Block == store.Head {
			whole := op
			whole.Parts, whole.Expr = 0, nil
			byKey = append(byKey, question(b, &whole))
		}
		mixed = append(mixed, question(b, &op))
	}
	for _, set := range []struct {
		name string
		list [][]byte
	}{{"key", byKey}, {"mixA", mixed}} {
		b.Run(fmt.Sprintf("query=%s/layout=%s/clients=%d", set.name, *benchLayout, *benchClients), func(b *testing.B) {
			n.ask(b, set.list)
		})
	}
}

// question makes a call of a read.
func question(b *testing.B, op *mix.Op) []byte {
	text := "$key = " + op.Key.String()
	if op.Expr != nil {
		text = op.Expr.String()
	}
	options := m{"includeData": m{"key": true, "attributes": op.Parts == 0 || op.Parts&store.Attributes != 0, "payload": op.Parts == 0 || op.Parts&store.Content != 0, "owner": op.Parts == 0}}
	if op.Block != store.Head {
		options["atBlock"] = fmt.Sprintf("0x%x", op.Block)
	}
	if op.Limit > 0 {
		options["resultsPerPage"] = fmt.Sprintf("0x%x", op.Limit)
	}
	body, err := json.Marshal(m{"jsonrpc": "2.0", "id": 1, "method": "arkiv_query", "params": []any{text, options}})
	require.NoError(b, err)
	return body
}

// ask has clients send questions, each over a connection of its own. They do as little as
// they can, since they take from the same processors.
func (n *node) ask(b *testing.B, list [][]byte) {
	var next, received atomic.Int64
	address := strings.TrimPrefix(n.url, "http://")
	failed := make(chan error, *benchClients)
	b.ReportAllocs()
	b.ResetTimer()
	for range *benchClients {
		go func() {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				failed <- err
				return
			}
			defer conn.Close()
			in, reader := bytes.Buffer{}, bufio.NewReaderSize(conn, 64<<10)
			for {
				i := next.Add(1) - 1
				if i >= int64(b.N) {
					failed <- nil
					return
				}
				q := list[int(i)%len(list)]
				in.Reset()
				fmt.Fprintf(&in, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(q))
				in.Write(q)
				if _, err := conn.Write(in.Bytes()); err != nil {
					failed <- err
					return
				}
				n, err := readAnswer(reader, &in)
				if err != nil {
					failed <- fmt.Errorf("%s: %w", q, err)
					return
				}
				received.Add(int64(n))
			}
		}()
	}
	for range *benchClients {
		require.NoError(b, <-failed)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64(received.Load())/float64(b.N), "B/answer")
}

// readAnswer reads an answer, which must be a page with something in it.
func readAnswer(r *bufio.Reader, body *bytes.Buffer) (int, error) {
	tp := textproto.NewReader(r)
	if line, err := tp.ReadLine(); err != nil || !strings.Contains(line, " 200 ") {
		return 0, fmt.Errorf("%q: %w", line, err)
	}
	header, err := tp.ReadMIMEHeader()
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil {
		return 0, err
	}
	body.Reset()
	if _, err := io.CopyN(body, r, int64(n)); err != nil {
		return 0, err
	}
	if !bytes.HasPrefix(body.Bytes(), []byte(`{"jsonrpc":"2.0","id":1,"result":{"data":[`)) {
		return 0, fmt.Errorf("answered was %.200s", body.Bytes())
	}
	return n, nil
}
