//go:build !unix

package sqlitewal

// OnReadOnly does not know: SQLite says so itself when it opens the file.
func OnReadOnly(string) bool { return false }

func canMake(string) error { return nil }
