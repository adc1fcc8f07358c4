package compact

// SetPageBytes makes pages of postings as long as a test wants them, until it is called
// again.
func SetPageBytes(n int) (before int) {
	before, pageBytes = pageBytes, n
	return before
}
