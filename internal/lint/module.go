package lint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/engine"
)

// Module is the import path of the repository's main module.
const Module = engine.Module

// Package is what the rules need of go list's description of a package. In a
// list with tests, the package "p.test" is p's test program.
type Package struct {
	ImportPath string
	Dir        string
	Name       string
	ForTest    string   // the package under test, in its variants
	Standard   bool     // of the standard library
	Imports    []string // direct, without tests
	Deps       []string // direct and indirect

	GoFiles         []string
	EmbedFiles      []string
	TestEmbedFiles  []string
	XTestEmbedFiles []string
}

// Root returns the directory of the main module, which is the nearest one above
// the working directory whose go.mod declares it.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte("module "+Module+"\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod of " + Module + " in this directory or above")
		}
		dir = parent
	}
}

// List describes the packages of the module in dir, their tests, and everything
// that these import.
func List(ctx context.Context, dir string) ([]Package, error) {
	const fields = "ImportPath,Dir,Name,ForTest,Standard,Imports,Deps," +
		"GoFiles,EmbedFiles,TestEmbedFiles,XTestEmbedFiles"
	return goList[Package](ctx, dir, "-deps", "-test", "-json="+fields, "./...")
}

// goList runs go list in a directory and reads the JSON objects that it prints.
func goList[T any](ctx context.Context, dir string, args ...string) ([]T, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w\n%s", dir, err, stderr.Bytes())
	}
	var list []T
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var v T
		if err := dec.Decode(&v); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list in %s: %w", dir, err)
		}
		list = append(list, v)
	}
}

// Modules returns the directories of all modules in the tree that have Go
// source, the main module's first.
func Modules(root string) ([]string, error) {
	var dirs []string
	err := walk(root, func(path string) error {
		if filepath.Base(path) != "go.mod" {
			return nil
		}
		source, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.go"))
		if err != nil {
			return err
		}
		if filepath.Dir(path) == root || len(source) > 0 {
			dirs = append(dirs, filepath.Dir(path))
		}
		return nil
	})
	return dirs, err
}

// Files returns the files below root whose names end in one of the suffixes,
// relative to root and with slashes, in order. Files in testdata, hidden ones
// and built programs are left out.
func Files(root string, suffixes ...string) ([]string, error) {
	var files []string
	err := walk(root, func(path string) error {
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(name, s) }) {
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// walk calls visit for every file below root except those in testdata, in the
// directory for built programs, and in hidden directories other than .ci.
func walk(root string, visit func(path string) error) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return visit(path)
		}
		name := entry.Name()
		hidden := strings.HasPrefix(name, ".") && name != ".ci"
		if path != root && (hidden || name == "testdata" || name == "bin") {
			return filepath.SkipDir
		}
		return nil
	})
}

// plain removes the test variant from an import path: "p [q.test]" is p.
func plain(importPath string) string {
	path, _, _ := strings.Cut(importPath, " ")
	return path
}
