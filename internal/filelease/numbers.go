package filelease

import "os"

// Numbers are numbers in a small file that all its users share, in this process
// and in others. They start at zero, and the last user removes the file. A
// killed process leaves the file: the next user starts with zero, but finds the
// kept numbers, unless the system was restarted since. Where no such file can
// be made, each user has separate numbers.
type Numbers struct {
	Path string
	Mode os.FileMode // of the file

	shared
}

// Kept is the number of kept numbers.
const Kept = 2

// The layout of the file: the raised number, the kept numbers, and the id of
// the system start that they belong to.
const (
	keptAt     = 1 // in words of 8 bytes
	bootAt     = (keptAt + Kept) * 8
	bootSize   = 40
	numberSize = bootAt + bootSize
)
