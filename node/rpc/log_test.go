package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/store/entity"
)

// gotLog is a log as it is answered.
type gotLog struct {
	Address string   `json:"address"`
	Topics  []string `json:"topics"`
	Data    string   `json:"data"`
	Block   string   `json:"blockNumber"`
	Hash    string   `json:"blockHash"`
	Index   string   `json:"logIndex"`
	TxIndex string   `json:"transactionIndex"`
	Removed bool     `json:"removed"`
}

var eventNames = map[topic]string{
	chain.TopicCreated: "created", chain.TopicUpdated: "updated", chain.TopicExpired: "expired", chain.TopicDeleted: "deleted",
	chain.TopicExtended: "extended", chain.TopicOwnerChanged: "owner changed", chain.TopicOperation: "operation",
}

// String tells a log in short: the block, the event, the entity, and what else there is.
func (l gotLog) String() string {
	var event topic
	if err := event.UnmarshalText([]byte(l.Topics[0])); err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("%s %s %s", l.Block, eventNames[event], strings.TrimLeft(l.Topics[1][4:], "0"))
	for data := l.Data[2:]; data != ""; data = data[64:] {
		text += " " + strings.TrimLeft(data[:63], "0") + data[63:64]
	}
	if l.Removed {
		text += " removed"
	}
	return text
}

func texts(logs []gotLog) (list []string) {
	for _, l := range logs {
		list = append(list, l.String())
	}
	return list
}

var fromProcessor = m{"address": "0x00000000000000000000000000000061726b6976"}

func of(from, to uint64) m {
	c := clone(fromProcessor)
	c["fromBlock"], c["toBlock"] = fmt.Sprintf("0x%x", from), fmt.Sprintf("0x%x", to)
	return c
}

// events is a chain in which each event happens.
func events(t *testing.T, n *node) {
	short := create(3)
	short.BTL = 3
	first := create(2)
	first.TxIndex = 1
	n.apply(t, 10, create(1), first, short)
	update := create(1)
	update.Kind, update.Content = entity.Update, []byte("new")
	n.apply(t, 11, update, entity.Op{Kind: entity.ExtendBTL, Key: keyOf(2), BTL: 5})
	n.apply(t, 12, entity.Op{Kind: entity.ChangeOwner, Key: keyOf(1), Owner: bob}, create(4))
	n.apply(t, 13, entity.Op{Kind: entity.Delete, Key: keyOf(1)}, entity.Op{Kind: entity.Expire, Key: keyOf(3)})
	n.apply(t, 15)
	n.apply(t, 18, entity.Op{Kind: entity.Delete, Key: keyOf(4)}, create(4), create(5), entity.Op{Kind: entity.Delete, Key: keyOf(5)})
}

func TestLogs(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			n := newNode(t, layout, Options{Limits: Limits{Blocks: 19}, Wait: 20 * time.Millisecond})
			events(t, n)
			want := []string{
				"0xa created 1 3f2 0", "0xa created 3 d 0", "0xa created 2 3f2 0",
				"0xb updated 1 3f2 3f3 0", "0xb extended 2 3f2 10 0",
				"0xc created 4 3f4 0", "0xc owner changed 1",
				"0xd expired 3", "0xd deleted 1",
				"0x12 expired 2", "0x12 deleted 4", "0x12 created 4 3fa 0",
			}
			var logs []gotLog
			n.result(t, &logs, "eth_getLogs", of(0, 18))
			require.Equal(t, want, texts(logs))
			n.handler.recent.InvalidateAll()
			for range 2 { // read, and remembered
				for b := uint64(9); b <= 18; b++ {
					n.result(t, &logs, "eth_getLogs", of(b, b))
					for _, l := range logs {
						require.Equal(t, want[0], l.String())
						want = append(want[1:], want[0])
					}
				}
			}
			n.result(t, &logs, "eth_getLogs", m{"fromBlock": "0xc", "toBlock": "0xc", "topics": []any{"0x" + fmt.Sprintf("%x", chain.TopicOwnerChanged[:])}})
			require.Len(t, logs, 1)
			require.Equal(t, []string{keyOf(1).String(), word(alice), word(bob)}, logs[0].Topics[1:])
			byHash := m{"blockHash": logs[0].Hash, "topics": []any{nil, keyOf(4).String()}, "address": []any{fromProcessor["address"]}}
			n.result(t, &logs, "eth_getLogs", byHash)
			require.Equal(t, []string{"0xc created 4 3f4 0"}, texts(logs))
			n.result(t, &logs, "eth_getLogs", m{"fromBlock": "0x0", "address": "0x4400000000000000000000000000000000000044", "topics": []any{nil, nil, []any{fmt.Sprintf("0x%064x", entityExtended.op), fmt.Sprintf("0x%064x", entityExpired.op)}}})
			require.Equal(t, []string{"0xb operation 2 10 0", "0xd operation 3 d 0", "0x12 operation 2 10 0"}, texts(logs))
			n.fails(t, CodeAhead, "eth_getLogs", m{"fromBlock": "0x13"})
			n.fails(t, CodeAhead, "eth_getLogs", of(18, 19))
			n.apply(t, 19)
			n.fails(t, CodeTooLarge, "eth_getLogs", of(0, 19))
			n.fails(t, CodeParams, "eth_getLogs", of(12, 11))
			n.result(t, &logs, "eth_getLogs", m{"fromBlock": "finalized", "toBlock": "finalized"})
			require.Empty(t, logs)
		})
	}
}

func word(a entity.Address) string { return "0x000000000000000000000000" + a.String()[2:] }

// TestFilters: a filter returns the logs since it was polled, withdraws rewound
// ones, and is removed when it is not polled.
func TestFilters(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	n := newNode(t, "compact", Options{Limits: Limits{Filters: 3, FilterIdle: time.Minute}, Now: func() time.Time { return now }, Poll: time.Hour})
	n.apply(t, 10, create(1))
	var logs, blocks, bounded string
	n.result(t, &logs, "eth_newFilter", fromProcessor)
	n.result(t, &bounded, "eth_newFilter", of(11, 11))
	n.result(t, &blocks, "eth_newBlockFilter")
	n.fails(t, CodeTooManyOpened, "eth_newBlockFilter")
	changes := func(want ...string) {
		t.Helper()
		var got []gotLog
		n.result(t, &got, "eth_getFilterChanges", logs)
		require.Equal(t, want, texts(got))
	}
	changes()
	n.apply(t, 11, create(2))
	n.apply(t, 13, create(3))
	changes("0xb created 2 3f3 0", "0xd created 3 3f5 0")
	changes()
	var within []gotLog
	n.result(t, &within, "eth_getFilterChanges", bounded)
	require.Equal(t, []string{"0xb created 2 3f3 0"}, texts(within))
	require.NoError(t, n.ents.Rewind(t.Context(), 11))
	n.apply(t, 12, create(4))
	n.apply(t, 13, create(5))
	changes("0xd created 3 3f5 0 removed", "0xc created 4 3f4 0", "0xd created 5 3f5 0")
	require.NoError(t, n.ents.Rewind(t.Context(), 10))
	changes("0xd created 5 3f5 0 removed", "0xc created 4 3f4 0 removed", "0xb created 2 3f3 0 removed")
	n.apply(t, 11, create(6))
	changes("0xb created 6 3f3 0")
	// Blocks that were withdrawn are sent, though those in their place were pruned.
	require.NoError(t, n.ents.Rewind(t.Context(), 10))
	for b := range uint64(4) {
		n.apply(t, 11+b, create(7+int(b)))
	}
	require.NoError(t, n.ents.Prune(t.Context(), 14))
	changes("0xb created 6 3f3 0 removed")
	changes()
	n.apply(t, 15, create(6))
	changes("0xf created 6 3f7 0")
	var hashes []string
	n.result(t, &hashes, "eth_getFilterChanges", blocks)
	require.Len(t, hashes, 5)
	var all []gotLog
	n.result(t, &all, "eth_getFilterLogs", logs)
	require.Equal(t, []string{"0xf created 6 3f7 0"}, texts(all))
	n.fails(t, CodeParams, "eth_getFilterLogs", blocks)
	var removed bool
	n.result(t, &removed, "eth_uninstallFilter", blocks)
	require.True(t, removed)
	n.result(t, &removed, "eth_uninstallFilter", blocks)
	require.False(t, removed)
	// A filter that was asked for is not unused, however old it is.
	now = now.Add(50 * time.Second)
	n.result(t, &all, "eth_getFilterLogs", logs)
	n.handler.filters.expire(now.Add(-time.Second))
	changes()
	n.fails(t, CodeNoFilter, "eth_getFilterChanges", bounded)
	n.handler.filters.expire(now.Add(time.Second))
	n.fails(t, CodeNoFilter, "eth_getFilterChanges", logs)
}

// dial opens a WebSocket connection and returns what calls and what reads.
func (n *node) dial(t *testing.T) (*websocket.Conn, func(any), func() answered) {
	t.Helper()
	conn, r, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(n.url, "http"), nil)
	require.NoError(t, err)
	if r.Body != nil {
		require.NoError(t, r.Body.Close())
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(1 << 20)
	send := func(body any) {
		text, err := json.Marshal(body)
		require.NoError(t, err)
		require.NoError(t, conn.Write(t.Context(), websocket.MessageText, text))
	}
	return conn, send, func() (a answered) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, text, err := conn.Read(ctx)
		require.NoError(t, err)
		var notice struct {
			answered
			Params struct{ Result json.RawMessage }
		}
		require.NoError(t, json.Unmarshal(text, &notice), "%s", text)
		if notice.Params.Result != nil {
			notice.Result = notice.Params.Result
		}
		return notice.answered
	}
}

func (n *node) subscribe(t *testing.T, params ...any) (id string, send func(any), read func() answered) {
	t.Helper()
	_, send, read = n.dial(t)
	send(m{"jsonrpc": "2.0", "id": 5, "method": "eth_subscribe", "params": params})
	a := read()
	require.Nil(t, a.Error)
	require.Equal(t, "5", string(a.ID))
	require.NoError(t, json.Unmarshal(a.Result, &id))
	return id, send, read
}

// TestFollowing: the subscriptions of all connections are bounded together.
func TestFollowing(t *testing.T) {
	n := newNode(t, "compact", Options{Limits: Limits{Subscriptions: 2000}})
	n.apply(t, 9)
	call := m{"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": []any{"newHeads"}}
	_, first, answer := n.dial(t)
	_, second, other := n.dial(t)
	for range 512 {
		first(call)
		second(call)
		require.Nil(t, answer().Error)
		require.Nil(t, other().Error)
	}
	second(call)
	require.Equal(t, CodeTooManyOpened, other().Error.Code, "the 1,025th")
	first(call)
	a := answer()
	require.Equal(t, CodeTooManyOpened, a.Error.Code)
	require.Contains(t, a.Error.Message, "1024 subscriptions of all connections")
	_, third, last := n.dial(t)
	third(call)
	require.Equal(t, CodeTooManyOpened, last().Error.Code)
}

// TestFollowersMemory: filters and subscriptions together hold no more memory than
// requests may, and give it back.
func TestFollowersMemory(t *testing.T) {
	n := newNode(t, "compact", Options{Limits: Limits{Memory: 4 << 20, Filters: 1000, Subscriptions: 1000}})
	n.apply(t, 9)
	topics := make([]string, 1000)
	for i := range topics {
		topics[i] = fmt.Sprintf("0x%064x", i)
	}
	filter := m{"topics": []any{topics}}
	_, send, read := n.dial(t)
	ask := func(method string, params ...any) answered {
		send(m{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
		return read()
	}
	var ids []json.RawMessage
	for len(ids) < 300 {
		var a answered
		if len(ids)%2 == 0 {
			a = ask("eth_newFilter", filter)
		} else {
			a = ask("eth_subscribe", "logs", filter)
		}
		if a.Error != nil {
			require.Equal(t, CodeTooManyOpened, a.Error.Code)
			require.Contains(t, a.Error.Message, "memory")
			break
		}
		ids = append(ids, a.Result)
	}
	require.Less(t, len(ids), 300)
	require.Greater(t, len(ids), 30)
	require.Equal(t, "true", string(ask("eth_uninstallFilter", ids[0]).Result))
	require.Nil(t, ask("eth_newFilter", filter).Error)
	require.Equal(t, CodeTooManyOpened, ask("eth_subscribe", "logs", filter).Error.Code)
	require.Equal(t, "true", string(ask("eth_unsubscribe", ids[1]).Result))
	require.Eventually(t, func() bool { return ask("eth_newFilter", filter).Error == nil }, time.Minute, time.Millisecond)
	for ask("eth_newFilter", filter).Error == nil {
	}
	n.handler.filters.expire(time.Now().Add(time.Hour))
	require.Nil(t, ask("eth_newFilter", filter).Error, "filters that expire give it back too")
}

// TestLogsLimit: an answer has as many logs as it may. A question with more is
// refused, and a filter gets the rest with the next poll.
func TestLogsLimit(t *testing.T) {
	n := newNode(t, "compact", Options{Limits: Limits{Logs: 3}})
	n.apply(t, 9)
	var filter string
	n.result(t, &filter, "eth_newFilter", fromProcessor)
	n.apply(t, 10, create(1), create(2), create(3))
	n.apply(t, 11, create(4))
	var logs []gotLog
	n.result(t, &logs, "eth_getLogs", of(10, 10))
	require.Len(t, logs, 3)
	n.fails(t, CodeTooLarge, "eth_getLogs", of(10, 11))
	for _, want := range []int{3, 1, 0} {
		n.result(t, &logs, "eth_getFilterChanges", filter)
		require.Len(t, logs, want)
	}
}

// TestFollowingRefused: a subscription that its connection refuses takes no place
// of the others.
func TestFollowingRefused(t *testing.T) {
	n := newNode(t, "compact", Options{Limits: Limits{Subscriptions: 1, Following: 2}})
	n.apply(t, 9)
	_, send, read := n.subscribe(t, "newHeads")
	for range 3 {
		send(m{"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": []any{"newHeads"}})
		require.Equal(t, CodeTooManyOpened, read().Error.Code)
	}
	n.subscribe(t, "newHeads")
}

// TestSubscribe: subscriptions send each event once, also during calls on the
// connection.
func TestSubscribe(t *testing.T) {
	n := newNode(t, "compact", Options{Limits: Limits{Subscriptions: 1}})
	n.apply(t, 9)
	_, _, logs := n.subscribe(t, "logs", fromProcessor)
	id, send, heads := n.subscribe(t, "newHeads")
	events(t, n)
	var got []string
	for range 12 {
		var l gotLog
		require.NoError(t, json.Unmarshal(logs().Result, &l))
		got = append(got, l.String())
	}
	require.Equal(t, "0xa created 1 3f2 0", got[0])
	require.Equal(t, "0x12 created 4 3fa 0", got[11])
	for _, number := range []string{"0xa", "0xb", "0xc", "0xd", "0xf", "0x12"} {
		var head struct{ Number, Hash, Timestamp string }
		require.NoError(t, json.Unmarshal(heads().Result, &head))
		require.Equal(t, number, head.Number)
		require.Len(t, head.Hash, 66)
	}
	lag := func() string { return fmt.Sprint(n.handler.notifications()) }
	require.Eventually(t, func() bool { return lag() == "2 0" }, time.Minute, time.Millisecond)
	var slow atomic.Uint64 // a subscription that was told of nothing since block 11
	slow.Store(12)
	n.handler.notified.Store(&slow, nil)
	require.Eventually(t, func() bool { return lag() == "3 7" }, time.Minute, time.Millisecond) // the last head comes by polling
	n.handler.notified.Delete(&slow)
	send(m{"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": []any{"newHeads"}})
	require.Equal(t, CodeTooManyOpened, heads().Error.Code)
	send(m{"jsonrpc": "2.0", "id": 1, "method": "eth_unsubscribe", "params": []any{id}})
	require.Equal(t, "true", string(heads().Result))
	require.Eventually(t, func() bool { return lag() == "1 0" }, time.Minute, time.Millisecond)
	send(m{"jsonrpc": "2.0", "id": 1, "method": "eth_unsubscribe", "params": []any{id}})
	require.Equal(t, CodeNoFilter, heads().Error.Code)
	n.apply(t, 30)
	send([]any{m{"jsonrpc": "2.0", "id": 8, "method": "eth_subscribe", "params": []any{"logs", m{"topics": []any{"0x1"}}}}})
	conn, _, read := n.dial(t)
	require.NoError(t, conn.Write(t.Context(), websocket.MessageBinary, []byte(body("eth_chainId", "[]"))))
	require.Equal(t, `"0x539"`, string(read().Result))
	require.NoError(t, conn.Write(t.Context(), websocket.MessageText, []byte("{")))
	require.Equal(t, CodeParse, read().Error.Code)
	go func() { _ = n.handler.Close() }()
	_, _, err := conn.Read(t.Context())
	require.Equal(t, websocket.StatusGoingAway, websocket.CloseStatus(err))
}
