package driver

// Mortal is implemented by engines that can end by themselves, as one whose server was
// killed.
type Mortal interface {
	// Ended is closed when nothing can be asked of the database any more, also by Close.
	// Whoever has it open closes it, which says why, and may open it again.
	Ended() <-chan struct{}
}
