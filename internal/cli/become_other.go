//go:build !unix

package cli

import "errors"

// become always fails, because this system has no exec.
func become(string, []string, []string) error { return errors.ErrUnsupported }
