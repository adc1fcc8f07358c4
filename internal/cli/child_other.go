//go:build !linux

package cli

import "syscall"

// ownGroup does nothing here: a child receives the parent's signals, and may
// outlive a killed parent.
func ownGroup() *syscall.SysProcAttr { return nil }
