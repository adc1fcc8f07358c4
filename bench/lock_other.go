//go:build !unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// lock would need another call than flock here; without a lock two builders
// would spoil each other's data set.
func lock(_ context.Context, path string) (*os.File, error) { return tryLock(path) }

func tryLock(path string) (*os.File, error) {
	return nil, fmt.Errorf("lock %q: the data-set cache: %w on this system", path, errors.ErrUnsupported)
}
