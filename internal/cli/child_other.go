//go:build !linux

package cli

import "syscall"

// ownGroup is nothing here: a child shares the parent's signals, and may outlive one that
// is killed.
func ownGroup() *syscall.SysProcAttr { return nil }
