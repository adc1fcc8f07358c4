// Package lint has the repository's rules that golangci-lint cannot check: what
// its documents may say (document.go) and which commands they show
// (command.go). Its tests apply them, and check what programs link, and SQL
// files. Figures in documents are checked by the tests of report. The allowed
// imports between packages are in .golangci.yml.
//
// Run it with -count=1, because the test cache does not notice new imports.
package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/engine"
)

// Problem is a violation of a rule at a place.
type Problem struct {
	Path    string
	Line    int
	Message string // the fault and its remedy
}

// String returns the problem as path:line: message.
func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message) }

// Root returns the directory of the main module, at or above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte("module "+engine.Module+"\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod of " + engine.Module + " in this directory or above")
		}
		dir = filepath.Dir(dir)
	}
}

// Files returns the files below root whose names end in one of the suffixes,
// relative to root, with slashes and sorted. Built programs, test data and
// hidden directories other than .ci are left out.
func Files(root string, suffixes ...string) ([]string, error) {
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			if slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(path, s) }) {
				files = append(files, path)
			}
		case path != "." && (name == "testdata" || name == "bin" || name[0] == '.' && name != ".ci"):
			return fs.SkipDir
		}
		return nil
	})
	return files, err
}
