package driver

// Keeper is implemented by engines whose databases are files. It keeps numbers beside a
// database by which is known, after a process was killed, how far it had come: a database
// that has lost a part since, such as its log, looks like one that never had it. They are
// zero when nobody has the database open, unless a process was killed that had and the
// system was not started anew since: then they are what it left.
type Keeper interface {
	// Kept returns a number, the i-th of two.
	Kept(i int) uint64

	// Keep replaces it, when it is still the old one, and tells whether it was.
	Keep(i int, old, n uint64) bool

	// Confirm says that the database holds what a number names. One that a process has left
	// and nobody has confirmed is not forgotten by Close.
	Confirm(i int)
}
