package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/node/rpc/rpctest"
	"github.com/varvedb/varve/store/entity"
)

// TestSDK has each of Arkiv's own libraries read everything that it can ask, over HTTP and
// WebSocket, and the events that it is told of.
func TestSDK(t *testing.T) {
	if testing.Short() {
		t.Skip("installs libraries of other languages")
	}
	a, b := alice.String(), bob.String()
	for _, l := range []struct {
		name, script string
		events       []string
	}{
		// Of other owners it does not tell, though it knows the event.
		{"javascript", "read.mjs", []string{
			"created " + a + " 24", "updated 1010 1022", "extended 1010 72", "created " + a + " 1023", "expired " + a, "deleted " + a,
		}},
		{"python", "read.py", []string{
			"created " + a + " 1023", "created " + a + " 24", "deleted " + a, "extended " + a + " 72", "owner changed " + b, "updated " + a + " 1022",
		}},
	} {
		for _, layout := range layouts {
			t.Run(l.name+"/"+layout, func(t *testing.T) {
				script, err := os.ReadFile("testdata/sdk/" + l.script)
				require.NoError(t, err)
				read(t, l.name, string(script), layout, l.events)
			})
		}
	}
}

// read runs a script of a library, and shows it blocks when it says that it watches.
func read(t *testing.T, library, script, layout string, events []string) {
	n := newStore(t, layout)
	var list []entity.Op
	for i := range 450 {
		list = append(list, create(i))
	}
	n.apply(t, 10, list[:250]...)
	n.apply(t, 20, list[250:]...)
	n.apply(t, 21, entity.Op{Kind: entity.Update, Key: keyOf(3), BTL: 1000, Owner: alice, Content: []byte("changed"), StringAttributes: map[string]string{"type": `say "hi" \d`}})
	n.serve(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run := rpctest.Command(ctx, t, library, script, n.url, "ws"+strings.TrimPrefix(n.url, "http"))
	var stderr bytes.Buffer
	run.Stderr = &stderr
	out, err := run.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	told := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch lines.Text() {
		case "subscribed":
			n.changes(t)
		case "large":
			n.large(t)
		default:
			var list []string
			require.NoError(t, json.Unmarshal(lines.Bytes(), &list), "%s", lines.Text())
			require.Equal(t, events, list)
			told++
		}
	}
	require.NoError(t, run.Wait(), "%s", stderr.String())
	require.NotZero(t, told)
}

// large makes 30 entities of 400 kB.
func (n *node) large(t *testing.T) {
	var ops []entity.Op
	for i := range 30 {
		op := create(600 + i)
		op.Content = bytes.Repeat([]byte{byte(i)}, 400_000)
		op.StringAttributes = map[string]string{"type": "large"}
		ops = append(ops, op)
	}
	n.apply(t, 25, ops...)
}

// changes does everything that there are events of.
func (n *node) changes(t *testing.T) {
	short, update := create(500), create(1)
	short.BTL, update.Kind, update.Content = 2, entity.Update, []byte("changed")
	n.apply(t, 22, short, update, entity.Op{Kind: entity.ExtendBTL, Key: keyOf(2), BTL: 50})
	n.apply(t, 23, entity.Op{Kind: entity.ChangeOwner, Key: keyOf(4), Owner: bob}, create(501))
	n.apply(t, 24, entity.Op{Kind: entity.Expire, Key: keyOf(500)}, entity.Op{Kind: entity.Delete, Key: keyOf(5)})
}

// TestStockClients reads a node by means of clients that know nothing of Arkiv: blocks in
// batches, logs, and what they ask of any chain. Go's client is in examples/arkiv-devnet.
func TestStockClients(t *testing.T) {
	if testing.Short() {
		t.Skip("installs libraries of other languages")
	}
	for library, script := range map[string]string{"javascript": "viem.mjs", "python": "web3.py"} {
		t.Run(script, func(t *testing.T) {
			n := newStore(t, "compact")
			for i := range 12 { // blocks 10 to 21
				var list []entity.Op
				for j := range 15 {
					if i < 10 {
						list = append(list, create(15*i+j))
					}
				}
				n.apply(t, uint64(10+i), list...)
			}
			require.NoError(t, n.ents.Prune(t.Context(), 12))
			n.serve(t, Options{Limits: Limits{MaxResults: 100}})
			text, err := os.ReadFile("testdata/sdk/" + script)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			out, err := rpctest.Command(ctx, t, library, string(text), n.url, "ws"+strings.TrimPrefix(n.url, "http")).CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}
