//go:build unix

package cli

import "syscall"

// become replaces this process by another program. It returns only on failure.
func become(path string, args, environ []string) error {
	return syscall.Exec(path, append([]string{path}, args...), environ)
}
