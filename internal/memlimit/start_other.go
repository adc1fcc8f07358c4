//go:build !linux

package memlimit

import (
	"errors"
	"os/exec"
)

// Start fails: there are no groups.
func (g *Group) Start(*exec.Cmd) error { return errors.ErrUnsupported }
