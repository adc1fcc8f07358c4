package filelease

import "os"

// Numbers are numbers that all users of the file of a path share, in this
// process and in others. They are zero at first, and again after the last user
// has closed it: then the file is removed. A process that was killed leaves the
// file. The next user begins with zero, except for the kept numbers, which it
// finds unless the system was started since. Where there can be no such file,
// each user has separate numbers.
type Numbers struct {
	Path string
	Mode os.FileMode // of the file

	shared
}

// Kept is how many numbers are kept.
const Kept = 2

// The file: the raised number, the kept numbers, and the system's start that
// they belong to.
const (
	keptAt     = 1 // in words of 8 bytes
	bootAt     = (keptAt + Kept) * 8
	bootSize   = 40
	numberSize = bootAt + bootSize
)
