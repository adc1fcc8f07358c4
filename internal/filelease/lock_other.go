//go:build !unix

package filelease

import (
	"fmt"
	"os"

	"github.com/varvedb/varve/store/driver"
)

// Lock fails: without it two processes would spoil what they share.
func Lock(*os.File) error {
	return fmt.Errorf("%w: locks that end with a process, on this system", driver.ErrUnsupported)
}
