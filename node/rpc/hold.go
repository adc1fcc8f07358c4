package rpc

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net/http"
	"os"

	"github.com/varvedb/varve/internal/quota"
)

// What requests and answers hold is bounded together, by Limits.Memory. Who wants more waits,
// and who holds memory that others wait for, because a client dawdles, is cut off.

// usualAnswer is what a query holds before it asks the store: hardly one needs more.
const usualAnswer = 1 << 20

// begin waits for what the answer to a query needs beside what is there. The store is not asked
// before.
func (m *message) begin(ctx context.Context) error {
	return m.hold.Take(ctx, m.size+int64(len(m.out))+usualAnswer)
}

// room holds what the answer to a call needs with n more bytes, and does not wait: others wait
// for the reader of the store, and for what is held.
func (m *message) room(n int) error {
	wants := m.size + int64(len(m.out)+n)
	if wants > usualAnswer {
		wants = 1 << bits.Len64(uint64(wants)) // slices grow by doubling
	}
	if !m.hold.Try(wants) {
		return fmt.Errorf("%w, or ask for less", quota.ErrFull)
	}
	return nil
}

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
