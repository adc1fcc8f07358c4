package cli

import (
	"context"
	"errors"

	"github.com/varvedb/varve/internal/source"
)

// openSource opens what a command is given to read blocks from.
func openSource(ctx context.Context, src string) (*source.Source, error) {
	s, err := source.Open(ctx, src)
	if errors.As(err, new(source.UsageError)) {
		err = usageError{err}
	}
	return s, err
}
