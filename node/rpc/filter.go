package rpc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/store"
)

// filters holds the filters that clients have installed.
type filters struct {
	mu   sync.Mutex
	list map[string]*installed
}

// installed is an installed filter.
type installed struct {
	mu       sync.Mutex // held during a poll
	follower *follower
	asked    time.Time // last poll; guarded by the lock of filters
}

// newID returns an unguessable id, because the id alone gives access to a
// filter.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return "0x" + hex.EncodeToString(b[:])
}

func (f *filters) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.list)
}

// expire removes the filters that were last polled before a time.
func (f *filters) expire(since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, filter := range f.list {
		if filter.asked.Before(since) {
			filter.follower.hold.Release()
			delete(f.list, id)
		}
	}
}

func (f *filters) install(follower *follower, most int, now time.Time) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) >= most {
		return "", failf(CodeTooManyOpened, "more than %d filters; uninstall some, or wait until unused ones are gone", most)
	}
	id := newID()
	f.list[id] = &installed{follower: follower, asked: now}
	return id, nil
}

func (f *filters) find(id string, now time.Time) (*installed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	filter, ok := f.list[id]
	if !ok {
		return nil, failf(CodeNoFilter, "filter not found")
	}
	filter.asked = now
	return filter, nil
}

func (f *filters) remove(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	filter, ok := f.list[id]
	if ok {
		filter.follower.hold.Release()
		delete(f.list, id)
	}
	return ok
}

// newFilter serves eth_newFilter.
func (h *Handler) newFilter(ctx context.Context, c *call) error {
	var criteria criteria
	if err := c.param(0, "the filter", true, &criteria); err != nil {
		return err
	}
	return h.installFilter(ctx, c, &criteria)
}

// newBlockFilter serves eth_newBlockFilter.
func (h *Handler) newBlockFilter(ctx context.Context, c *call) error {
	return h.installFilter(ctx, c, nil)
}

func (h *Handler) installFilter(ctx context.Context, c *call, criteria *criteria) error {
	follower, err := h.newFollower(ctx, criteria)
	if err != nil {
		return err
	}
	id, err := h.filters.install(follower, h.opts.Limits.Filters, h.opts.Now())
	if err != nil {
		follower.hold.Release()
	}
	c.out = fmt.Appendf(c.out, "%q", id)
	return err
}

func (h *Handler) filterOf(c *call) (*installed, error) {
	var id string
	if err := c.param(0, "the filter's id", false, &id); err != nil {
		return nil, err
	}
	return h.filters.find(id, h.opts.Now())
}

// getFilterChanges serves eth_getFilterChanges: the logs or blocks since the
// last poll.
func (h *Handler) getFilterChanges(ctx context.Context, c *call) error {
	filter, err := h.filterOf(c)
	if err != nil {
		return err
	}
	filter.mu.Lock()
	defer filter.mu.Unlock()
	news, _, err := h.advance(ctx, filter.follower)
	if err != nil && len(news) == 0 {
		return err
	}
	c.out = append(c.out, '[')
	open := len(c.out)
	for _, step := range news {
		if filter.follower.criteria == nil && !step.removed {
			hash := blockHash(step.head)
			c.out = append(jsonuint.AppendHex(append(c.out, '"'), hash[:]), '"', ',')
		}
		for _, l := range step.logs {
			c.out = append(appendLog(c.out, step.head, l, step.removed), ',')
		}
	}
	c.out = append(withoutComma(c.out, open), ']')
	return nil
}

// uninstallFilter serves eth_uninstallFilter.
func (h *Handler) uninstallFilter(_ context.Context, c *call) error {
	var id string
	if err := c.param(0, "the filter's id", false, &id); err != nil {
		return err
	}
	c.out = fmt.Appendf(c.out, "%t", h.filters.remove(id))
	return nil
}

// getFilterLogs serves eth_getFilterLogs: all logs that a filter selects.
func (h *Handler) getFilterLogs(ctx context.Context, c *call) error {
	filter, err := h.filterOf(c)
	if err != nil {
		return err
	}
	if filter.follower.criteria == nil {
		return failf(CodeParams, "a filter of blocks has no logs")
	}
	return h.appendLogs(ctx, c, filter.follower.criteria)
}

// getLogs serves eth_getLogs.
func (h *Handler) getLogs(ctx context.Context, c *call) error {
	var criteria criteria
	if err := c.param(0, "the filter", false, &criteria); err != nil {
		return err
	}
	return h.appendLogs(ctx, c, &criteria)
}

// appendLogs answers with the logs of a range of blocks, or of the block with a
// hash.
func (h *Handler) appendLogs(ctx context.Context, c *call, criteria *criteria) error {
	// Find the range.
	snap, err := h.reached(ctx, criteria.last())
	if err != nil {
		return err
	}
	defer snap.Close()
	from, err := criteria.From.at(ctx, snap)
	to, failed := criteria.To.at(ctx, snap)
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	if criteria.Hash != nil {
		b, ok, err := h.hashes.find(ctx, snap, *criteria.Hash)
		if err != nil {
			return err
		}
		if !ok {
			return failf(CodeUnknownBlock, "unknown block %s", criteria.Hash)
		}
		from, to = b.Number, b.Number
	}

	// Of the block at the horizon only the resulting state is known, not its
	// changes, so "earliest" is the block after it.
	c.out = append(c.out, '[')
	open := len(c.out)
	defer func() { c.out = append(withoutComma(c.out, open), ']') }()
	if horizon := snap.Horizon(); horizon > 0 && criteria.From != nil && criteria.From.word == "earliest" {
		if from = max(from, horizon+1); to == horizon {
			return nil
		}
	}
	switch {
	case snap.Head().Empty:
		return nil
	case from > to:
		return failf(CodeParams, "from block %d to block %d", from, to)
	case to-from >= h.opts.Limits.Blocks:
		return failf(CodeTooLarge, "a range of %d blocks, at most %d are allowed", to-from+1, h.opts.Limits.Blocks)
	}

	// Append the logs of each block.
	n := 0
	err = h.eachBlock(ctx, snap, from, to, func(b store.BlockHeader, logs []*Log) bool {
		for _, l := range logs {
			if !criteria.match(l) {
				continue
			}
			if n++; n > h.opts.Limits.Logs {
				return false
			}
			c.out = append(appendLog(c.out, b, l, false), ',')
		}
		return true
	})
	if err == nil && n > h.opts.Limits.Logs {
		return failf(CodeTooLarge, "more than %d logs; ask for fewer blocks at a time", h.opts.Limits.Logs)
	}
	return err
}
