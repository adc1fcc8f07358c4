package filelease

import "os"

// Numbers are numbers that all share who use the file of a path at once, in this process
// and in others. They are zero at first, and again when nobody uses them any more: then the
// file is removed. A process that was killed leaves the file; who uses it next begins with
// zero, but for the numbers that are kept: he finds those, unless the system was started
// anew since. Where there can be no such file, each has numbers of its own.
type Numbers struct {
	Path string
	Mode os.FileMode // of the file

	shared
}

// Kept is how many numbers are kept.
const Kept = 2

// The file: the number that is raised, those that are kept, and which start of the system
// they are of.
const (
	keptAt     = 1 // in words of 8 bytes
	bootAt     = (keptAt + Kept) * 8
	bootSize   = 40
	numberSize = bootAt + bootSize
)
