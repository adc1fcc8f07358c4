// Package build returns the version and source revision of the program.
package build

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/varvedb/varve/internal/engine"
)

// Info describes the source of a program.
type Info struct {
	Version  string `json:"version"`            // of the module; "(devel)" when built from a tree that no tag names
	Revision string `json:"revision,omitempty"` // of the commit, with "+changes" when there were some on top of it
	Time     string `json:"time,omitempty"`     // of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"` // system/processor
	Cgo      bool   `json:"cgo"`
}

// Changes is appended to a revision with uncommitted changes.
const Changes = "+changes"

// Devel is the version of an untagged build.
const Devel = "(devel)"

// Read reads the description of this program.
func Read() Info {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return Of(info)
}

// Of converts the description of a build. A program that imports Varve reports
// the version that it requires, or none if it replaces the module.
func Of(info *debug.BuildInfo) Info {
	i := Info{Version: Devel, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	i.Cgo = setting(info, "CGO_ENABLED") == "1"
	if info.Main.Path != engine.Module {
		for _, dep := range info.Deps {
			if dep.Path == engine.Module && dep.Replace == nil {
				i.Version = cmp.Or(dep.Version, Devel)
			}
		}
		return i
	}
	i.Version = cmp.Or(info.Main.Version, Devel)
	i.Revision, i.Time = setting(info, "vcs.revision"), setting(info, "vcs.time")
	if setting(info, "vcs.modified") == "true" {
		i.Revision += Changes
	}
	return i
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// String returns the version in one line.
func (i Info) String() string {
	parts := []string{i.Version}
	if i.Revision != "" {
		parts = append(parts, i.Revision)
	}
	parts = append(parts, i.Go, i.Platform)
	if !i.Cgo {
		parts = append(parts, "without cgo")
	}
	return strings.Join(parts, " ")
}
