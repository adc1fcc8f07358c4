package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	ethrpc "github.com/ethereum/go-ethereum/rpc"
)

// criteria is which logs a client asks for.
type criteria struct {
	From    *ethrpc.BlockNumber       `json:"fromBlock"`
	To      *ethrpc.BlockNumber       `json:"toBlock"`
	Block   *common.Hash              `json:"blockHash"`
	Address oneOrMore[common.Address] `json:"address"`
	Topics  []oneOrMore[common.Hash]  `json:"topics"`
}

// oneOrMore is a value, a list of such, or null for any.
type oneOrMore[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *oneOrMore[T]) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("[")) {
		return json.Unmarshal(text, (*[]T)(l))
	}
	if string(text) == "null" {
		return nil
	}
	var one T
	err := json.Unmarshal(text, &one)
	*l = oneOrMore[T]{one}
	return err
}

func (c *criteria) match(l *types.Log) bool {
	if len(c.Address) > 0 && !slices.Contains(c.Address, l.Address) || len(c.Topics) > len(l.Topics) {
		return false
	}
	for i, t := range c.Topics {
		if len(t) > 0 && !slices.Contains(t, l.Topics[i]) {
			return false
		}
	}
	return true
}

// logs returns what is in the chain.
func (c *criteria) logs(a *blocksAPI) ([]*types.Log, error) {
	list := []*types.Log{}
	if c.Block != nil {
		b := a.find(ethrpc.BlockNumberOrHashWithHash(*c.Block, true))
		if b == nil {
			return nil, errors.New("unknown block")
		}
		return append(list, b.logs(c.match)...), nil
	}
	blocks := a.list()
	from, to := c.bound(c.From, len(blocks)), c.bound(c.To, len(blocks))
	if from > to && c.To != nil && from < len(blocks) {
		return nil, fmt.Errorf("invalid block range: from %d to %d", from, to)
	}
	for n := from; n <= to && n < len(blocks); n++ {
		list = append(list, blocks[n].logs(c.match)...)
	}
	return list, nil
}

func (c *criteria) bound(n *ethrpc.BlockNumber, blocks int) int {
	switch {
	case n == nil:
		return blocks - 1
	case *n == ethrpc.EarliestBlockNumber:
		return 0
	case *n < 0:
		return blocks - 1
	}
	return int(*n)
}

// news returns what came after a position of the journal, and the position after it.
func (c *Chain) news(after int) ([]step, int, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.journal[after:], len(c.journal), c.moved
}

func (c *criteria) of(s step) []*types.Log {
	list := s.block.logs(c.match)
	if s.removed {
		for i, l := range list {
			gone := *l
			gone.Removed = true
			list[i] = &gone
		}
	}
	return list
}

// filters are those that clients have installed.
type filters struct {
	mu   sync.Mutex
	list map[ethrpc.ID]*filter
}

// filter is one; without criteria it is of blocks.
type filter struct {
	criteria *criteria
	next     int
	asked    time.Time
}

const (
	maxFilters = 1000
	idleFilter = 5 * time.Minute
)

func (a *ethAPI) install(c *criteria) (ethrpc.ID, error) {
	_, next, _ := a.chain.news(0)
	a.filters.mu.Lock()
	defer a.filters.mu.Unlock()
	now := time.Now()
	for id, f := range a.filters.list {
		if now.Sub(f.asked) > idleFilter {
			delete(a.filters.list, id)
		}
	}
	if len(a.filters.list) >= maxFilters {
		return "", fmt.Errorf("more than %d filters; uninstall some", maxFilters)
	}
	id := ethrpc.NewID()
	a.filters.list[id] = &filter{c, next, now}
	return id, nil
}

// NewFilter serves eth_newFilter.
func (a *ethAPI) NewFilter(c criteria) (ethrpc.ID, error) { return a.install(&c) }

// NewBlockFilter serves eth_newBlockFilter.
func (a *ethAPI) NewBlockFilter() (ethrpc.ID, error) { return a.install(nil) }

// UninstallFilter serves eth_uninstallFilter.
func (a *ethAPI) UninstallFilter(id ethrpc.ID) bool {
	a.filters.mu.Lock()
	defer a.filters.mu.Unlock()
	_, ok := a.filters.list[id]
	delete(a.filters.list, id)
	return ok
}

// GetFilterChanges serves eth_getFilterChanges.
func (a *ethAPI) GetFilterChanges(id ethrpc.ID) (any, error) {
	a.filters.mu.Lock()
	defer a.filters.mu.Unlock()
	f, ok := a.filters.list[id]
	if !ok {
		return nil, errors.New("filter not found")
	}
	news, next, _ := a.chain.news(f.next)
	f.next, f.asked = next, time.Now()
	if f.criteria == nil {
		hashes := []common.Hash{}
		for _, s := range news {
			if !s.removed {
				hashes = append(hashes, s.block.Hash())
			}
		}
		return hashes, nil
	}
	logs := []*types.Log{}
	for _, s := range news {
		logs = append(logs, f.criteria.of(s)...)
	}
	return logs, nil
}

// GetFilterLogs serves eth_getFilterLogs.
func (a *ethAPI) GetFilterLogs(id ethrpc.ID) ([]*types.Log, error) {
	a.filters.mu.Lock()
	f, ok := a.filters.list[id]
	a.filters.mu.Unlock()
	if !ok || f.criteria == nil {
		return nil, errors.New("filter not found")
	}
	return f.criteria.logs(&a.blocksAPI)
}

// GetLogs serves eth_getLogs.
func (a *ethAPI) GetLogs(c criteria) ([]*types.Log, error) { return c.logs(&a.blocksAPI) }

// Logs serves eth_subscribe of logs.
func (a *ethAPI) Logs(ctx context.Context, c *criteria) (*ethrpc.Subscription, error) {
	if c == nil {
		c = &criteria{}
	}
	return a.subscribe(ctx, func(tell func(any) error, s step) error {
		for _, l := range c.of(s) {
			if err := tell(l); err != nil {
				return err
			}
		}
		return nil
	})
}

// NewHeads serves eth_subscribe of blocks.
func (a *ethAPI) NewHeads(ctx context.Context) (*ethrpc.Subscription, error) {
	return a.subscribe(ctx, func(tell func(any) error, s step) error {
		if s.removed {
			return nil
		}
		return tell(s.block.Header())
	})
}

func (a *ethAPI) subscribe(ctx context.Context, each func(tell func(any) error, s step) error) (*ethrpc.Subscription, error) {
	notifier, ok := ethrpc.NotifierFromContext(ctx)
	if !ok {
		return nil, ethrpc.ErrNotificationsUnsupported
	}
	sub := notifier.CreateSubscription()
	_, next, moved := a.chain.news(0)
	go func() {
		for {
			select {
			case <-moved:
			case <-sub.Err(): //nolint:errcheck // it is closed, also when the connection ends
				return
			}
			var news []step
			news, next, moved = a.chain.news(next)
			for _, s := range news {
				if each(func(v any) error { return notifier.Notify(sub.ID, v) }, s) != nil {
					return // the connection is closed
				}
			}
		}
	}()
	return sub, nil
}
