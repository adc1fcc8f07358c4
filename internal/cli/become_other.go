//go:build !unix

package cli

import "errors"

// become cannot: this system starts programs beside each other only.
func become(string, []string, []string) error { return errors.ErrUnsupported }
