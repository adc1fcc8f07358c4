package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/varvedb/varve/internal/build"
	"github.com/varvedb/varve/internal/engine"
)

// Revision is the source that was measured.
type Revision struct {
	Go string `json:"go"`

	// Source is a hash of all that the measurement is built from, whatever the commit
	// is called; empty when the source is not there or newer than the program.
	Source string `json:"source,omitempty"`

	Commit   string `json:"commit"`   // of Varve, or its version when it is a dependency
	Modified bool   `json:"modified"` // there were changes on top of it
}

// Name returns what tells one source from another: the hash, else the commit; false
// when changes on top of a commit make it no name of what was measured.
func (r Revision) Name() (name string, known bool) {
	if r.Source != "" {
		return r.Source, true
	}
	return r.Commit, r.Commit != "" && !r.Modified
}

// ReadRevision asks the build, and git when the build does not know, as in
// tests. It does so once: every record has a manifest with the answer.
func ReadRevision() Revision { return ownRevision() }

var ownRevision = sync.OnceValue(func() Revision {
	r := Revision{Go: runtime.Version(), Source: ownSource()}
	if info, ok := debug.ReadBuildInfo(); ok {
		r.fromBuild(info)
	}
	if r.Commit == "" {
		r.fromGit()
	}
	return r
})

const modulePath = engine.Module

func (r *Revision) fromBuild(info *debug.BuildInfo) {
	i := build.Of(info)
	r.Commit, r.Modified = strings.CutSuffix(i.Revision, build.Changes)
	if info.Main.Path != modulePath && i.Version != build.Devel {
		r.Commit = i.Version
	}
}

// sourceRoot is the tree that this program was built in, which the compiler tells, so
// that the working directory does not matter; one built with -trimpath does not know.
func sourceRoot() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(file))
}

// fromGit looks at the work tree of the source.
func (r *Revision) fromGit() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	status, _ := exec.CommandContext(ctx, "git", "-C", sourceRoot(), "status", "--porcelain=v2", "--branch").Output()
	for line := range strings.Lines(string(status)) {
		if commit, found := strings.CutPrefix(line, "# branch.oid "); found {
			r.Commit = strings.TrimSpace(commit)
		} else if line[0] != '#' {
			r.Modified = true
		}
	}
}

// ownSource hashes the source. What was changed since may not be what was built.
func ownSource() string {
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	built, err := os.Stat(program)
	if err != nil {
		return ""
	}
	hash, newest, err := hashSource(sourceRoot())
	if err != nil || newest.After(built.ModTime()) {
		return ""
	}
	return hash
}

// unmeasured are the directories that nothing measured is built from. To name those
// that do not count is the safe way round: a package that nobody thought of voids
// results, and never keeps those that it should void. A test looks at what is linked.
var unmeasured = []string{
	"cmd", "docs", "examples", "internal/cli", "internal/crashtest", "internal/fault", "internal/faulttest", "internal/lint",
	"internal/pgtest", "internal/progress", "internal/report", "internal/tools", "internal/verdict",
}

// suites are not measured either, but the model below them is: answers are compared with it.
const suites = "store/storetest"

var errNoSource = errors.New("not the source of " + modulePath)

// hashSource hashes the module in a directory and tells when it was last changed:
// go.mod and go.sum, which say what else is linked, and every file that is built or
// embedded. Tests and texts are not.
func hashSource(root string) (hash string, newest time.Time, err error) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module "+modulePath+"\n") {
		return "", newest, fmt.Errorf("%s: %w", root, errNoSource)
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version())
	tree := os.DirFS(root)
	err = fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipDir(path, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !isSource(path):
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		text, err := fs.ReadFile(tree, path)
		fmt.Fprintf(sum, "%q %x\n", path, sha256.Sum256(text))
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:16]), newest, err
}

// skipDir leaves out what is not built into a measurement. The module's own testdata
// is a package.
func skipDir(rel, name string) bool {
	return rel != "." && strings.HasPrefix(name, ".") || name == "testdata" && rel != name || slices.Contains(unmeasured, rel)
}

// isSource tells files that are built or embedded; at the top, only the module's.
func isSource(rel string) bool {
	if !strings.Contains(rel, "/") {
		return rel == "go.mod" || rel == "go.sum"
	}
	return path.Dir(rel) != suites && !strings.HasSuffix(rel, "_test.go") && !strings.HasSuffix(rel, ".md")
}
