//go:build !linux

package memlimit

import (
	"errors"
	"os/exec"
)

// Start fails, because there are no groups here.
func (g *Group) Start(*exec.Cmd) error { return errors.ErrUnsupported }
