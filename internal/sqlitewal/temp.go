package sqlitewal

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/dbfile"
)

// explainTemp adds to SQLite's I/O error that it has no directory for its
// temporary files, because SQLite's message lacks that. Libraries with codes
// have one for it, and libSQL has none, so it is looked up here.
func explainTemp(err error) error {
	if err == nil || !strings.Contains(err.Error(), "disk I/O error") || slices.ContainsFunc(tempDirs(), mayHold) {
		return err
	}
	return fmt.Errorf("there is no directory for SQLite's temporary files: none of %s can be written; set SQLITE_TMPDIR to one that can: %w",
		strings.Join(tempDirs(), ", "), err)
}

// tempDirs are the directories that SQLite tries, in its order
// (https://www.sqlite.org/tempfiles.html, section 5).
func tempDirs() []string {
	list := []string{os.Getenv("SQLITE_TMPDIR"), os.Getenv("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp", "."}
	return slices.DeleteFunc(list, func(dir string) bool { return dir == "" })
}

func mayHold(dir string) bool {
	st, err := os.Stat(dir)
	return err == nil && st.IsDir() && dbfile.MayWrite(dir) == nil
}
