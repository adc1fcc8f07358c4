package rpc

import (
	"cmp"
	"context"
	"errors"
	"unsafe"

	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/store"
)

// blockLogs is a block with the selected logs.
type blockLogs struct {
	head    store.BlockHeader
	parent  topic // its hash; zero when it is not known
	logs    []*Log
	removed bool // the block is no longer part of the chain
}

// recentCount bounds the cache of the last blocks' logs, which every
// subscription reads. Each block counts as one more.
const recentCount = 64 << 10

// eachBlock passes the logs of a range of blocks to give, in order, until give
// returns false. From the first block whose logs are not cached, it makes them
// from the changes in the store.
func (h *Handler) eachBlock(ctx context.Context, snap *store.Snapshot, from, to uint64, give func(store.BlockHeader, []*Log) bool) error {
	blocks, err := snap.Headers(ctx, from, to)
	if err != nil {
		return err
	}
	for len(blocks) > 0 {
		logs, ok := []*Log(nil), false
		if h.opts.Logs != nil {
			logs, ok = h.opts.Logs(blocks[0])
		}
		if !ok {
			logs, ok = h.recent.GetIfPresent(blocks[0])
		}
		if !ok {
			break
		}
		if !give(blocks[0], logs) {
			return nil
		}
		blocks = blocks[1:]
	}
	if len(blocks) == 0 {
		return ctx.Err()
	}
	for set, err := range snap.Changes(ctx, blocks[0].Number, to) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		logs := logsOf(&set)
		h.recent.Set(set.Head, logs)
		if !give(set.Head, logs) {
			return nil
		}
	}
	return ctx.Err()
}

// follower is the state of a filter or subscription.
type follower struct {
	criteria *criteria           // nil: it sends blocks only
	next     uint64              // the first block that was not sent
	sent     []store.BlockHeader // the last blocks that were sent
	logs     map[uint64][]*Log   // logs that were sent with these blocks, by number
	hold     *quota.Hold         // memory of the follower
}

const (
	// maxSent is how many sent blocks a follower remembers: in a deeper
	// reorganisation not all are sent as removed.
	maxSent = 128
	// maxStep is how many blocks are sent in one step.
	maxStep = 1000
)

// advance returns the new logs since the last call, at most as many as an
// answer may have, and whether there are more.
func (h *Handler) advance(ctx context.Context, f *follower) (news []blockLogs, more bool, err error) {
	snap, err := h.ents.At(ctx, store.Head)
	if err != nil {
		return nil, false, err
	}
	defer snap.Close()
	head := snap.Head()
	if news, err = f.retract(ctx, snap); err != nil || head.Empty {
		return news, false, err
	}
	to := min(head.Number, f.next+maxStep-1)
	if f.next > to {
		return news, false, nil
	}
	count, last := 0, to
	tell := func(b store.BlockHeader, all []*Log) bool {
		step := blockLogs{head: b}
		if n := len(f.sent); n > 0 {
			step.parent = blockHash(f.sent[n-1])
		}
		if f.criteria != nil && f.criteria.within(b.Number) {
			for _, l := range all {
				if f.criteria.match(l) {
					step.logs = append(step.logs, l)
				}
			}
		}
		news = append(news, step)
		f.markSent(b, step.logs)
		f.next, last = b.Number+1, b.Number
		count += len(step.logs)
		return count < h.opts.Limits.Logs
	}
	if f.criteria == nil {
		blocks, err := snap.Headers(ctx, f.next, to)
		if err != nil {
			return news, false, err
		}
		for _, b := range blocks {
			tell(b, nil)
		}
	} else if err := h.eachBlock(ctx, snap, f.next, to, tell); err != nil {
		if errors.Is(err, store.ErrBlockRange) {
			f.next = head.Number + 1 // pruned before it could be sent
		}
		return news, false, err
	}
	if count < h.opts.Limits.Logs {
		f.next, last = to+1, to // past gaps
	}
	return news, last < head.Number, nil
}

// markSent records a block as sent. It drops the oldest, because followers live
// long and there are many.
func (f *follower) markSent(b store.BlockHeader, logs []*Log) {
	if len(f.sent) == maxSent {
		delete(f.logs, f.sent[0].Number)
		f.sent = f.sent[:copy(f.sent, f.sent[1:])]
	}
	f.sent = append(f.sent, b)
	if len(logs) > 0 {
		if f.logs == nil {
			f.logs = map[uint64][]*Log{}
		}
		f.logs[b.Number] = logs
	}
}

// retract returns the sent blocks that are no longer part of the chain, newest
// first.
func (f *follower) retract(ctx context.Context, snap *store.Snapshot) (removed []blockLogs, err error) {
	for len(f.sent) > 0 {
		last := f.sent[len(f.sent)-1]
		now, err := snap.HeaderAt(ctx, last.Number)
		if err != nil || now == last {
			return removed, err
		}
		removed = append(removed, blockLogs{head: last, logs: f.logs[last.Number], removed: true})
		delete(f.logs, last.Number)
		f.sent = f.sent[:len(f.sent)-1]
		f.next = last.Number
		if n := len(f.sent); n > 0 {
			f.next = f.sent[n-1].Number + 1 // other blocks may be where there was a gap
		}
	}
	// The previously sent blocks were dropped, or the only one was a head that
	// is gone.
	if head := snap.Head(); f.next > head.Number+1 {
		f.next = head.Number + 1
	}
	return removed, nil
}

// newFollower returns a follower of the blocks after the head. The caller
// releases its memory.
func (h *Handler) newFollower(ctx context.Context, c *criteria) (_ *follower, err error) {
	if c != nil && !h.ents.Temporal() {
		return nil, failf(CodeNotSupported, "layout %s keeps only the head, and so no events; they need a store with history", h.ents.Layout())
	}
	f := &follower{criteria: c, hold: h.followers.Hold(nil)}
	// It holds the headers of maxSent blocks, and its criteria.
	bytes := maxSent * int64(unsafe.Sizeof(store.BlockHeader{}))
	if c != nil {
		bytes += c.bytes()
	}
	if !f.hold.Try(bytes) {
		return nil, failf(CodeTooManyOpened, "filters and subscriptions hold all the memory that they may; ask for fewer addresses and topics, or uninstall some")
	}
	defer func() {
		if err != nil {
			f.hold.Release()
		}
	}()
	snap, err := h.ents.At(ctx, store.Head)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	head := snap.Head()
	if head.Empty {
		return f, nil
	}
	// Blocks that were not sent need not be withdrawn, but the follower needs
	// their headers to detect where another history begins.
	blocks, err := snap.Headers(ctx, max(head.Number, maxSent-1)-(maxSent-1), head.Number)
	if err != nil {
		return nil, err
	}
	f.next, f.sent = head.Number+1, append(make([]store.BlockHeader, 0, maxSent), blocks...)
	return f, nil
}
