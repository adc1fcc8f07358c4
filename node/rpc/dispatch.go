package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"
)

// method is something that can be called.
type method struct {
	name    string
	serve   func(h *Handler, ctx context.Context, c *call) error
	parts   bool // it may send its answer in parts, for each of which it has the time of a call
	metrics *methodMetrics
}

// methods returns what can be called.
func methods() []*method {
	return []*method{
		{name: "arkiv_query", serve: (*Handler).query, parts: true},
		{name: "arkiv_getEntityCount", serve: (*Handler).getEntityCount},
		{name: "arkiv_getBlockTiming", serve: (*Handler).getBlockTiming},
		{name: "eth_chainId", serve: (*Handler).chainID},
		{name: "eth_blockNumber", serve: (*Handler).blockNumber},
		{name: "eth_getBlockByNumber", serve: (*Handler).getBlockByNumber},
		{name: "eth_getBlockByHash", serve: (*Handler).getBlockByHash},
		{name: "eth_getLogs", serve: (*Handler).getLogs},
		{name: "eth_newFilter", serve: (*Handler).newFilter},
		{name: "eth_newBlockFilter", serve: (*Handler).newBlockFilter},
		{name: "eth_getFilterChanges", serve: (*Handler).getFilterChanges},
		{name: "eth_getFilterLogs", serve: (*Handler).getFilterLogs},
		{name: "eth_uninstallFilter", serve: (*Handler).uninstallFilter},
		{name: "eth_subscribe", serve: (*Handler).subscribe},
		{name: "eth_unsubscribe", serve: (*Handler).unsubscribe},
		{name: "net_version", serve: (*Handler).netVersion},
		{name: "web3_clientVersion", serve: (*Handler).clientVersion},
	}
}

// call is a request that is being answered.
type call struct {
	params []json.RawMessage
	out    []byte   // the answer so far, but for what was sent; the result is added to it
	held   held     // the request and the answer
	socket *socket  // that it came over, nil for HTTP
	after  []func() // what to do when the answer was sent

	part func([]byte) error // sends a part of the answer; nil: all of it is held
	sent bool               // a part was
}

// send sends what there is of an answer. A client may take long for it, and its call does
// not count meanwhile.
func (h *Handler) send(c *call) error {
	<-h.places
	defer func() { h.places <- struct{}{} }()
	c.held.Await()
	err := c.part(c.out)
	c.held.Work()
	c.out, c.sent = c.out[:0], true
	if err != nil {
		return fmt.Errorf("%w: %w", context.Canceled, err)
	}
	return nil
}

// param reads a parameter; it may be absent, or null, when it is optional.
func (c *call) param(n int, name string, optional bool, dst any) error {
	if n >= len(c.params) || string(c.params[n]) == "null" {
		if optional {
			return nil
		}
		return failf(CodeParams, "parameter %d, %s, is missing", n+1, name)
	}
	if err := json.Unmarshal(c.params[n], dst); err != nil {
		return failf(CodeParams, "parameter %d, %s: %v", n+1, name, err)
	}
	return nil
}

// atMost refuses more parameters than a method takes.
func (c *call) atMost(n int) error {
	if len(c.params) > n {
		return failf(CodeParams, "%d parameters, at most %d are taken", len(c.params), n)
	}
	return nil
}

// handle answers a body: a request or a batch. It adds the answer to out, and nothing when
// none is due. What is to be done after sending it comes back, too. The answer to a request
// alone may be sent in parts, before its rest comes back.
func (h *Handler) handle(ctx context.Context, out, body []byte, s *socket, mine held, part func([]byte) error) (answer []byte, after []func(), note string) {
	list, batch, fault := decode(body, h.opts.Limits.Batch)
	if fault != nil {
		h.metrics.unknown.count(fault.code)
		return append(appendError(appendHead(out, null), fault), '}'), nil, "malformed"
	}
	if len(list) == 1 {
		out, after = h.alone(ctx, out, &list[0], batch, s, mine, part)
		return out, after, list[0].method
	}
	ctx, cancel := context.WithTimeout(ctx, h.opts.Limits.Time)
	defer cancel()
	start := len(out)
	out = append(out, '[')
	for i := range list {
		var more []func()
		open := len(out)
		out, more = h.answer(ctx, out, &list[i], s, mine, nil)
		after = append(after, more...)
		if len(out)-start > h.opts.Limits.Answer && list[i].id != nil {
			out = append(appendError(appendHead(out[:open], list[i].id), h.tooLarge()), '}')
		}
		if len(out) > open {
			out = append(out, ',')
		}
	}
	if len(out) == start+1 {
		return out[:start], after, fmt.Sprintf("batch of %d", len(list))
	}
	out[len(out)-1] = ']'
	return out, after, fmt.Sprintf("batch of %d", len(list))
}

// alone answers the only request of a body, which may be a batch.
func (h *Handler) alone(ctx context.Context, out []byte, r *request, batch bool, s *socket, mine held, part func([]byte) error) (answer []byte, after []func()) {
	if r.id == nil {
		return h.answer(ctx, out, r, s, mine, nil)
	}
	if batch {
		out = append(out, '[')
	}
	if out, after = h.answer(ctx, out, r, s, mine, part); batch {
		out = append(out, ']')
	}
	return out, after
}

func (h *Handler) tooLarge() *failure {
	return failf(CodeTooLarge, "the answer would be of more than %d bytes; ask for less at a time", h.opts.Limits.Answer)
}

func appendHead(b []byte, id json.RawMessage) []byte {
	return append(append(append(b, `{"jsonrpc":"2.0","id":`...), id...), ',')
}

// answer adds the answer to one request, unless it is a notification.
func (h *Handler) answer(ctx context.Context, out []byte, r *request, s *socket, mine held, part func([]byte) error) ([]byte, []func()) {
	start := len(out)
	m, known := h.methods[r.method]
	counts := h.metrics.unknown
	if known {
		counts = m.metrics
	}
	begun := counts.begin()
	c := call{params: r.params, held: mine, socket: s, part: part, out: append(appendHead(out, r.id), `"result":`...)}
	err := h.call(ctx, m, r, &c)
	if err == nil {
		err = c.room(0)
	}
	code := 0
	if err == nil && !c.sent && len(c.out)-start > h.opts.Limits.Answer {
		err = h.tooLarge()
	}
	if err != nil {
		f := classify(err)
		code = f.code
		if code == CodeInternal {
			h.opts.Log.Error("call", "method", r.method, "error", err)
		}
		if c.sent {
			c.out = appendError(append(c.out[:0], endOfPage...), f)
		} else {
			c.out = appendError(appendHead(c.out[:start], r.id), f)
		}
		c.after = nil
	}
	counts.end(begun, code)
	if r.id == nil {
		return c.out[:start], c.after
	}
	return append(c.out, '}'), c.after
}

// call calls a method. A panic in it is an error as others are.
func (h *Handler) call(ctx context.Context, m *method, r *request, c *call) (err error) {
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
	if !m.parts {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.opts.Limits.Time)
		defer cancel()
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return m.serve(h, ctx, c)
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}

// The methods that need no more than a line.

func (h *Handler) chainID(_ context.Context, c *call) error {
	c.out = appendQuantity(c.out, h.opts.ChainID)
	return nil
}

func (h *Handler) netVersion(_ context.Context, c *call) error {
	c.out = fmt.Appendf(c.out, `"%d"`, h.opts.ChainID)
	return nil
}

func (h *Handler) clientVersion(_ context.Context, c *call) error {
	c.out = append(c.out, `"varve"`...)
	return nil
}

func (h *Handler) blockNumber(ctx context.Context, c *call) error {
	head, err := h.head(ctx)
	c.out = appendQuantity(c.out, head.Block)
	return err
}

func (h *Handler) getEntityCount(ctx context.Context, c *call) error {
	n, err := h.countEntities(ctx)
	c.out = fmt.Appendf(c.out, "%d", n)
	return err
}

// getBlockTiming tells when the head was made, as far as that is known: without it, when
// it was first seen here.
func (h *Handler) getBlockTiming(ctx context.Context, c *call) error {
	if _, err := h.head(ctx); err != nil {
		return err
	}
	head, seen := h.heads.last()
	c.out = fmt.Appendf(c.out, `{"current_block":%d,"current_block_time":%d,"duration":%d}`,
		head.Block, blockTime(head, seen), (h.opts.BlockTime+time.Second-1)/time.Second)
	return nil
}
