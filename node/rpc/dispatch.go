package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/store"
)

// method answers a call by appending its result.
type method func(h *Handler, ctx context.Context, c *call) error

// methods returns the methods by name.
//
// A store's blocks have no transactions or fees, it keeps no keys, and it is
// never syncing. Many clients ask for these first. They get the answers of a
// chain on which no transactions were sent, because an error would stop the
// client, and no other number would be more accurate.
func methods() map[string]method {
	zero, none, empty := constant(`"0x0"`), constant("null"), constant("[]")
	list := map[string]method{
		"arkiv_getEntityCount":                    (*Handler).getEntityCount,
		"arkiv_getBlockTiming":                    (*Handler).getBlockTiming,
		"eth_chainId":                             (*Handler).chainID,
		"eth_blockNumber":                         (*Handler).blockNumber,
		"eth_getBlockByNumber":                    ofBlock(byNumber, (*Handler).block),
		"eth_getBlockByHash":                      ofBlock(byHash, (*Handler).block),
		"eth_getBlockReceipts":                    ofBlock(byEither, ofAny(empty)),
		"eth_getBlockTransactionCountByNumber":    ofBlock(byNumber, ofAny(zero)),
		"eth_getBlockTransactionCountByHash":      ofBlock(byHash, ofAny(zero)),
		"eth_getUncleCountByBlockNumber":          ofBlock(byNumber, ofAny(zero)),
		"eth_getUncleCountByBlockHash":            ofBlock(byHash, ofAny(zero)),
		"eth_getTransactionByHash":                none,
		"eth_getTransactionByBlockHashAndIndex":   none,
		"eth_getTransactionByBlockNumberAndIndex": none,
		"eth_getTransactionReceipt":               none,
		"eth_syncing":                             constant("false"),
		"eth_accounts":                            empty,
		"eth_gasPrice":                            zero,
		"eth_maxPriorityFeePerGas":                zero,
		"eth_feeHistory":                          (*Handler).feeHistory,
		"eth_getLogs":                             (*Handler).getLogs,
		"eth_newFilter":                           (*Handler).newFilter,
		"eth_newBlockFilter":                      (*Handler).newBlockFilter,
		"eth_getFilterChanges":                    (*Handler).getFilterChanges,
		"eth_getFilterLogs":                       (*Handler).getFilterLogs,
		"eth_uninstallFilter":                     (*Handler).uninstallFilter,
		"eth_subscribe":                           (*Handler).subscribe,
		"eth_unsubscribe":                         (*Handler).unsubscribe,
		"net_version":                             (*Handler).netVersion,
		"web3_clientVersion":                      constant(`"varve"`),
	}
	for name, m := range list {
		list[name] = timed(m)
	}
	list["arkiv_query"] = (*Handler).query // not timed: each part of its answer has the time limit of a call
	return list
}

// constant makes a method that always returns the same text.
func constant(text string) method {
	return func(_ *Handler, _ context.Context, c *call) error {
		c.out = append(c.out, text...)
		return nil
	}
}

// ofAny adapts a method that needs no block to the methods that answer about one.
func ofAny(m method) func(*Handler, context.Context, *call, *store.Snapshot, store.BlockHeader) error {
	return func(h *Handler, ctx context.Context, c *call, _ *store.Snapshot, _ store.BlockHeader) error {
		return m(h, ctx, c)
	}
}

// timed makes a method fail after the time limit of a call.
func timed(m method) method {
	return func(h *Handler, ctx context.Context, c *call) error {
		ctx, cancel := context.WithTimeout(ctx, h.opts.Limits.Time)
		defer cancel()
		return m(h, ctx, c)
	}
}

// message is a request or a batch, with its answer.
type message struct {
	out    []byte      // the unsent part of the answer
	hold   *quota.Hold // memory of the request and the answer; nil does not count
	size   int64       // bytes of the request
	socket *socket     // that it came over, nil for HTTP
	after  []func()    // functions to call after the answer was sent

	most   int                // maximum bytes of the answer, unless it is sent in parts
	usual  int64              // memory that a query reserves before it asks the store
	full   bool               // a query was refused because the answer would be too long, so no others are run
	part   func([]byte) error // sends a part of the answer; nil: the answer is sent as a whole
	sent   bool               // a part was sent
	broken bool               // a part was sent, and the rest failed
}

// call is a request that is being answered; its result is appended to the
// answer.
type call struct {
	*message
	params []json.RawMessage
}

// send sends the answer so far. A slow client may take long, and the time limit
// of its call does not run meanwhile.
func (h *Handler) send(m *message) error {
	<-h.places
	defer func() { h.places <- struct{}{} }()
	m.hold.Await()
	err := m.part(m.out)
	m.hold.Work()
	m.out, m.sent = m.out[:0], true
	if err != nil {
		return fmt.Errorf("%w: %w", context.Canceled, err)
	}
	return nil
}

// param decodes a parameter. An optional one may be absent or null.
func (c *call) param(n int, name string, optional bool, dst any) error {
	if n >= len(c.params) || string(c.params[n]) == "null" {
		if optional {
			return nil
		}
		return failf(CodeParams, "parameter %d, %s, is missing", n+1, name)
	}
	// Unknown members are an error if the type of dst refuses them. If dst
	// decodes the text itself, json.Unmarshal is avoided, because it would
	// first scan the whole text twice.
	read := func(text []byte) error { return json.Unmarshal(text, dst) }
	if own, ok := dst.(json.Unmarshaler); ok {
		read = own.UnmarshalJSON
	}
	if err := read(c.params[n]); err != nil {
		return failf(CodeParams, "parameter %d, %s: %s", n+1, name, inWords(err))
	}
	return nil
}

// handle answers a body: a request or a batch. The answer is empty when none is
// due. The answer to a single request may be sent in parts, of which the rest
// is left in m. The note is for the log.
func (h *Handler) handle(ctx context.Context, m *message, body []byte) (note string) {
	list, batch, fault := decode(body, h.opts.Limits.Batch)
	if fault != nil {
		h.metrics.count(unknown, fault.code)
		m.out = append(appendError(appendHead(m.out, null), fault), '}')
		return "malformed"
	}
	note = list[0].method
	m.most, m.usual = h.opts.Limits.Answer, usualAnswer
	if len(list) > 1 {
		// A batch may take only the memory of a single query, because a client
		// can send several batches.
		m.most, m.usual = int(min(int64(m.most), h.opts.Limits.Memory)), usualBatch
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.opts.Limits.Time)
		defer cancel()
		note = fmt.Sprintf("batch of %d", len(list))
	}
	if len(list) > 1 || list[0].id == nil {
		m.part = nil
	}
	before := ""
	if batch {
		before = "["
	}
	for i := range list {
		if h.answer(ctx, m, &list[i], before) && batch {
			before = ","
		}
	}
	if before == "," {
		m.out = append(m.out, ']')
	}
	return note
}

// tooLarge refuses a query whose answer is too long. In a batch the error
// replaces the whole answer, so the store is not asked further.
func (m *message) tooLarge() *failure {
	m.full = true
	return failf(CodeTooLarge, "the answer would be of more than %d bytes; ask for less at a time", m.most)
}

func appendHead(b []byte, id json.RawMessage) []byte {
	return append(append(append(b, `{"jsonrpc":"2.0","id":`...), id...), ',')
}

// answer appends the answer to one request, preceded by before, unless the
// request is a notification.
func (h *Handler) answer(ctx context.Context, m *message, r *request, before string) bool {
	start, after := len(m.out), len(m.after)
	m.out = append(m.out, before...)
	head := len(m.out)
	m.out = append(appendHead(m.out, r.id), `"result":`...)
	method, name := h.methods[r.method], r.method
	if method == nil {
		name = unknown
	}
	h.metrics.inFlight.Inc()
	begun := time.Now()
	err := h.call(ctx, method, r, &call{m, r.params})
	if err == nil {
		err = m.room(0)
	}
	if err == nil && !m.sent && len(m.out) > m.most {
		err = m.tooLarge()
	}
	code := 0
	if err != nil {
		f := classify(err)
		code = f.code
		if code == CodeInternal {
			h.opts.Log.Error("call", "method", r.method, "error", err)
		}
		if m.sent {
			m.broken, m.out = true, m.out[:0]
			h.metrics.end(name, begun, code)
			return true
		}
		m.out = appendError(appendHead(m.out[:head], r.id), f)
		m.after = m.after[:after]
	}
	h.metrics.end(name, begun, code)
	if r.id == nil {
		m.out = m.out[:start]
		return false
	}
	m.out = append(m.out, '}')
	return true
}

// call calls a method. It converts a panic into an error.
func (h *Handler) call(ctx context.Context, m method, r *request, c *call) (err error) {
	switch {
	case r.err != nil:
		return r.err
	case m == nil:
		return failf(CodeMethod, "there is no method %q here", clip(r.method))
	}
	select {
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
	default:
		return failf(CodeBusy, "more than %d calls at a time; try again", cap(h.places))
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return m(h, ctx, c)
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}

// The methods that fit on one line.

func (h *Handler) chainID(_ context.Context, c *call) error {
	c.out = appendQuantity(c.out, h.opts.ChainID)
	return nil
}

func (h *Handler) netVersion(_ context.Context, c *call) error {
	c.out = fmt.Appendf(c.out, `"%d"`, h.opts.ChainID)
	return nil
}

func (h *Handler) blockNumber(ctx context.Context, c *call) error {
	head, err := h.head(ctx)
	c.out = appendQuantity(c.out, head.Number)
	return err
}

// getBlockTiming returns when the head was made, if that is known; otherwise
// when it was first seen here.
func (h *Handler) getBlockTiming(ctx context.Context, c *call) error {
	if _, err := h.head(ctx); err != nil {
		return err
	}
	head, seen := h.heads.last()
	c.out = fmt.Appendf(c.out, `{"current_block":%d,"current_block_time":%d,"duration":%d}`,
		head.Number, blockTime(head, seen), (h.opts.BlockTime+time.Second-1)/time.Second)
	return nil
}
