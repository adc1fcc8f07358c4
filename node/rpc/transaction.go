package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store"
)

// The limits of eth_feeHistory, as in go-ethereum.
const (
	maxFeeBlocks   = 1024
	maxPercentiles = 100
)

// percentiles are the requested percentiles of rewards.
type percentiles []float64

// UnmarshalJSON implements json.Unmarshaler.
func (p *percentiles) UnmarshalJSON(text []byte) (err error) {
	*p, err = readList[float64](text, maxPercentiles)
	return err
}

// feeHistory serves eth_feeHistory.
func (h *Handler) feeHistory(ctx context.Context, c *call) error {
	var count quantity
	var newest blockTag
	var rewards percentiles
	for _, err := range []error{
		c.param(0, "the number of blocks", false, &count),
		c.param(1, "the newest block", false, &newest),
		c.param(2, "the percentiles", true, &rewards),
	} {
		if err != nil {
			return err
		}
	}
	snap, err := h.ents.At(ctx, store.Head)
	if err != nil {
		return err
	}
	defer snap.Close()
	oldest, err := snap.OldestHeader(ctx)
	if err != nil {
		return err
	}
	last, err := newest.at(ctx, snap)
	switch {
	case err != nil:
		return err
	case last > snap.Head().Number:
		return fmt.Errorf("block %d is %w: the last one is %d", last, errAhead, snap.Head().Number)
	case last < oldest.Number:
		return failf(CodePruned, "block %d is below the first one, %d", last, oldest.Number)
	}
	n := min(uint64(count), maxFeeBlocks, last-oldest.Number+1)
	fees := struct {
		Oldest  string     `json:"oldestBlock"`
		Base    []string   `json:"baseFeePerGas"`
		Used    []int      `json:"gasUsedRatio"`
		Rewards [][]string `json:"reward,omitempty"`
	}{Oldest: fmt.Sprintf("%#x", last+1-n), Used: make([]int, n)}
	fees.Base = slices.Repeat([]string{"0x0"}, int(n)+1) // that of the next block is among them
	if len(rewards) > 0 {
		fees.Rewards = slices.Repeat([][]string{slices.Repeat([]string{"0x0"}, len(rewards))}, int(n))
	}
	text, err := json.Marshal(fees)
	c.out = append(c.out, text...)
	return err
}
