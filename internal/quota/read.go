package quota

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// spare is what bytes.Buffer wants free before it reads on without growing.
const spare = bytes.MinRead

// Read reads all of a body into a buffer and holds what that takes. The body's length is known,
// or below zero: then the buffer grows with it.
func (h *Hold) Read(ctx context.Context, b *bytes.Buffer, body io.Reader, length int64) error {
	size := int64(Free)
	for {
		switch _, err := io.CopyN(b, body, size-spare-int64(b.Len())); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if size *= 2; length >= 0 {
			size = max(length+spare+1, int64(b.Len())+2*spare) // the one byte is for the end
		}
		h.Work()
		if err := h.Take(ctx, size); err != nil {
			return err
		}
		h.Await()
		b.Grow(int(size) - b.Len())
	}
}
