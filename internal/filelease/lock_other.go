//go:build !unix

package filelease

import (
	"fmt"
	"os"

	"github.com/varvedb/varve/store/driver"
)

func lock(*os.File) error {
	return fmt.Errorf("%w: locks that end with a process, on this system", driver.ErrUnsupported)
}
