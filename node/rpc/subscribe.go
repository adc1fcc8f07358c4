package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/store"
)

// subscribe serves eth_subscribe: logs, or newHeads.
func (h *Handler) subscribe(ctx context.Context, c *call) error {
	if c.socket == nil {
		return failf(CodeNotSupported, "subscriptions need a WebSocket connection; over HTTP there are filters")
	}
	var kind string
	if err := c.param(0, "what to subscribe to", false, &kind); err != nil {
		return err
	}
	var wanted *criteria
	switch kind {
	case "logs":
		wanted = &criteria{}
		if err := c.param(1, "the filter", true, wanted); err != nil {
			return err
		}
	case "newHeads":
	default:
		return failf(CodeNotSupported, "no subscription to %q, only to logs and newHeads", clip(kind))
	}
	f, err := h.newFollower(ctx, wanted)
	if err != nil {
		return err
	}
	// Reserve a place among all subscriptions and one on this connection. Both
	// are released, with the memory, when it ends.
	select {
	case h.following <- struct{}{}:
	default:
		f.hold.Release()
		return failf(CodeTooManyOpened, "more than %d subscriptions of all connections", cap(h.following))
	}
	s, id := c.socket, newID()
	ctx, cancel := context.WithCancel(s.ctx)
	end := func() { cancel(); f.hold.Release(); <-h.following }
	s.mu.Lock()
	full := len(s.subscriptions) >= h.opts.Limits.Subscriptions
	if !full {
		s.subscriptions[id] = end
	}
	s.mu.Unlock()
	if full {
		end()
		return failf(CodeTooManyOpened, "more than %d subscriptions of a connection", h.opts.Limits.Subscriptions)
	}
	// Send its messages only after the answer with its id.
	c.after = append(c.after, func() {
		s.work.Go(func() {
			defer s.unsubscribe(id)
			if err := h.notify(ctx, s, id, f); err != nil && ctx.Err() == nil {
				s.cancel() // it would wait for ever for messages that do not come
			}
		})
	})
	c.out = fmt.Appendf(c.out, "%q", id)
	return nil
}

// unsubscribe serves eth_unsubscribe.
func (h *Handler) unsubscribe(_ context.Context, c *call) error {
	var id string
	if err := c.param(0, "the subscription's id", false, &id); err != nil {
		return err
	}
	if c.socket == nil || !c.socket.unsubscribe(id) {
		return failf(CodeNoFilter, "subscription not found")
	}
	c.out = append(c.out, "true"...)
	return nil
}

// notify sends new blocks or logs to a subscription until its connection ends.
// It asks the store again only when the client has read the previous ones, so a
// slow client is served later and takes no memory.
func (h *Handler) notify(ctx context.Context, s *socket, id string, f *follower) error {
	var next atomic.Uint64 // the first block that was not sent
	next.Store(f.next)
	h.notified.Store(&next, nil)
	defer h.notified.Delete(&next)
	var out []byte
	for {
		known, _ := h.heads.last()
		read, cancel := context.WithTimeout(ctx, h.opts.Limits.Time)
		news, more, err := h.advance(read, f)
		cancel()
		for _, step := range news {
			if f.criteria == nil && !step.removed {
				out = h.appendHeader(appendNotice(out[:0], id), step.head, step.parent)
				if err := s.send(ctx, append(out, "}}"...)); err != nil {
					return err
				}
			}
			for _, l := range step.logs {
				out = appendLog(appendNotice(out[:0], id), step.head, l, step.removed)
				if err := s.send(ctx, append(out, "}}"...)); err != nil {
					return err
				}
			}
		}
		next.Store(f.next)
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, store.ErrReaderExpired), errors.Is(err, store.ErrBlockRange):
			// Wait, and then continue with everything that is new by that time.
			h.opts.Log.Warn("a subscription lags behind", "error", err)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(h.opts.Limits.Time):
			}
		case err != nil:
			return err
		case !more:
			if _, err := h.heads.next(ctx, known); err != nil {
				return err
			}
		}
	}
}

// notifications returns the number of subscriptions, and the largest number of
// blocks that one is behind.
func (h *Handler) notifications() (count, lag int) {
	head, _ := h.heads.last()
	for next := range h.notified.Range {
		count++
		lag = max(lag, int(int64(head.Number+1)-int64(next.(*atomic.Uint64).Load())))
	}
	return count, lag
}

func appendNotice(b []byte, id string) []byte {
	return append(append(append(b, `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"`...), id...), `","result":`...)
}

// unknownFields are the header fields that a store does not have. Lists are
// empty, with the hashes of empty lists, because clients compare them.
const unknownFields = `,"nonce":"0x0000000000000000","sha3Uncles":"0x` + emptyUncles + `","logsBloom":"0x` + zeroBloom +
	`","transactionsRoot":"0x` + emptyRoot + `","stateRoot":"0x` + emptyRoot + `","receiptsRoot":"0x` + emptyRoot +
	`","miner":"0x0000000000000000000000000000000000000000","difficulty":"0x0","totalDifficulty":"0x0","extraData":"0x",` +
	`"gasLimit":"0x0","gasUsed":"0x0","mixHash":"0x` + zeroHash + `"}`

const (
	// emptyUncles is Keccak-256 of the RLP of an empty list, emptyRoot the root of an
	// empty trie: Keccak-256 of the RLP of an empty text.
	emptyUncles = "1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"
	emptyRoot   = "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"

	zeroHash  = "0000000000000000000000000000000000000000000000000000000000000000"
	zeroBloom = zeroHash + zeroHash + zeroHash + zeroHash + zeroHash + zeroHash + zeroHash + zeroHash
)

// appendHeader appends a block's header. The store has its number, hashes and
// time.
func (h *Handler) appendHeader(b []byte, head store.BlockHeader, parent topic) []byte {
	seen := h.opts.Now()
	if last, at := h.heads.last(); last == head {
		seen = at
	} else if last.Number > head.Number {
		seen = at.Add(-time.Duration(last.Number-head.Number) * h.opts.BlockTime)
	}
	hash := blockHash(head)
	b = appendQuantity(append(b, `{"number":`...), head.Number)
	b = append(jsonuint.AppendHex(append(b, `,"hash":"`...), hash[:]), '"')
	b = append(jsonuint.AppendHex(append(b, `,"parentHash":"`...), parent[:]), '"')
	b = appendQuantity(append(b, `,"timestamp":`...), blockTime(head, seen))
	return append(b, unknownFields...)
}
