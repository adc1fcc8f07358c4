//go:build !linux

package cli

import "syscall"

// ofItsOwn is nothing here: a child shares the parent's signals, and may outlive one that
// is killed.
func ofItsOwn() *syscall.SysProcAttr { return nil }
