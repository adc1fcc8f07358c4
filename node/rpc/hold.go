package rpc

import (
	"context"
	"errors"
	"math/bits"
	"net/http"
	"os"
	"time"

	"github.com/varvedb/varve/internal/quota"
)

// What requests and answers hold is bounded together, by Limits.Memory. Who wants more waits,
// and who holds memory that others wait for, because a client dawdles, is cut off.

// growWait is how long an answer that has begun waits for more memory: it holds some, which
// others may wait for.
const growWait = time.Second

// held is what a request and its answer hold.
type held struct {
	*quota.Hold
	request int64 // bytes
}

// need holds what an answer of n bytes needs beside the request.
func (h held) need(ctx context.Context, n int) error {
	if h.Hold == nil || h.request+int64(n) <= quota.Free {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, growWait)
	defer cancel()
	// Slices grow by doubling.
	err := h.Take(within, 1<<bits.Len64(uint64(h.request)+uint64(n)))
	if err != nil && ctx.Err() == nil {
		return failf(CodeBusy, "other answers hold the memory that this one needs; ask for less, or try again")
	}
	return err
}

// room holds what the answer to a call needs with n more bytes.
func (c *call) room(ctx context.Context, n int) error { return c.held.need(ctx, len(c.out)+n) }

// receiveFault tells what is wrong with a body that could not be read, and its status of HTTP.
func receiveFault(err error, most int64) (int, *failure) {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, failf(CodeTooLarge, "a request of more than %d bytes", most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout, failf(CodeTimeout, "the request did not come in time")
	case errors.Is(err, quota.ErrFull):
		return http.StatusServiceUnavailable, failf(CodeBusy, "%v", quota.ErrFull)
	}
	return http.StatusBadRequest, failf(CodeParse, "the request ends early: %v", err)
}
