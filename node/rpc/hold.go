package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"os"

	"github.com/varvedb/varve/internal/quota"
)

// Limits.Memory bounds the total memory of all requests and answers. A request
// that needs more waits. While others wait, a request with a slow client is cut
// off.

// decodeFactor estimates the memory of a request during decoding, as a multiple
// of its body: once for the body, the rest for copies of its parts.
const decodeFactor = 4

// whileDecoded is the memory that a request with a body of n bytes holds while
// it is decoded. It includes the memory of a batch's queries, because requests
// that hold some memory and wait for more could deadlock.
func whileDecoded(n int64) int64 { return max(decodeFactor*n, n+usualBatch+quota.Free) }

// receive reads a body. If it is longer than a body that needs no reservation,
// the request first waits for all the memory that it will hold. An unknown
// length (below zero) is taken as the maximum until the body is read.
func (h *Handler) receive(ctx context.Context, mine *quota.Hold, b *bytes.Buffer, body io.Reader, length int64) error {
	switch _, err := io.CopyN(b, body, quota.Free-bytes.MinRead); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	known := 0 <= length && length <= h.opts.Limits.Request
	if !known {
		length = h.opts.Limits.Request
	}
	if err := mine.Take(ctx, whileDecoded(length)); err != nil {
		return err
	}
	if known {
		b.Grow(int(length) - b.Len() + bytes.MinRead) // which reading to the end wants free
	}
	mine.Await()
	_, err := b.ReadFrom(body)
	mine.Work()
	mine.Shrink(whileDecoded(int64(b.Len())))
	return err
}

// usualAnswer is the memory that a query reserves before it asks the store; few
// need more.
const usualAnswer = 1 << 20

// usualBatch is the same for a batch. It is larger because a payload counts
// only after it was read, and a batch can read one after another: 16 concurrent
// batches had 64 MB that were not counted.
const usualBatch = 4 << 20

// room reserves memory for n more bytes of an answer. It does not wait, because
// the call holds a reader of the store, and memory, that others wait for.
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

// receiveFault returns the error for a body that could not be read, and its
// HTTP status.
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
