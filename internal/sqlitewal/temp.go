package sqlitewal

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/dbfile"
)

// explainTemp adds to SQLite's I/O error that there is no directory for
// temporary files, which SQLite's message does not say. Libraries with result
// codes have a code for it, but libSQL does not, so the directories are checked
// here.
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
