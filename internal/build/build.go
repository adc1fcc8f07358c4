// Package build tells what a program was built from.
package build

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/varvedb/varve/internal/engine"
)

// Info is what a program was built from.
type Info struct {
	Version  string `json:"version"`            // of the module; "(devel)" when built from a tree that no tag names
	Revision string `json:"revision,omitempty"` // of the commit, with "+changes" when there were some on top of it
	Time     string `json:"time,omitempty"`     // of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"` // system/processor
	Cgo      bool   `json:"cgo"`
}

// Read asks the build. A program that imports Varve gets the version it requires.
func Read() Info {
	i := Info{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return i
	}
	i.Cgo = setting(info, "CGO_ENABLED") == "1"
	if info.Main.Path != engine.Module {
		for _, dep := range info.Deps {
			if dep.Path == engine.Module {
				i.Version = cmp.Or(dep.Version, i.Version)
			}
		}
		return i
	}
	i.Version = cmp.Or(info.Main.Version, i.Version)
	i.Revision, i.Time = setting(info, "vcs.revision"), setting(info, "vcs.time")
	if setting(info, "vcs.modified") == "true" {
		i.Revision += "+changes"
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
