//go:build !unix

package cli

import "errors"

// become fails, because this system cannot replace a process by another
// program.
func become(string, []string, []string) error { return errors.ErrUnsupported }
