// Sbom prints the bill of materials of a Go program, as CycloneDX JSON: the
// modules that the linker recorded in it, with their versions and hashes.
package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	main := component(&info.Main)
	main.Type, main.Name = cdx.ComponentTypeApplication, filepath.Base(program)
	parts := []cdx.Component{{
		BOMRef: "pkg:golang/std@" + info.GoVersion, PackageURL: "pkg:golang/std@" + info.GoVersion,
		Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion,
	}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		parts = append(parts, component(dep))
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &main}
	bom.Components = &parts
	return cdx.NewBOMEncoder(os.Stdout, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

func component(m *debug.Module) cdx.Component {
	url := "pkg:golang/" + m.Path + "@" + m.Version
	c := cdx.Component{BOMRef: url, PackageURL: url, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version}
	if m.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}
