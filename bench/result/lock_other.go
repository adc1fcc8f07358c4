//go:build !unix

package result

import (
	"errors"
	"fmt"
	"os"
)

// lockFile would need another call than flock here; without a lock two
// processes could cut off each other's lines.
func lockFile(f *os.File) (unlock func() error, err error) {
	return nil, fmt.Errorf("lock %q: %w on this system", f.Name(), errors.ErrUnsupported)
}
