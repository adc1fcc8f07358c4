//go:build unix

package cli

import "syscall"

// become makes this process another program. It returns only when it cannot.
func become(path string, args, environ []string) error {
	return syscall.Exec(path, append([]string{path}, args...), environ)
}
