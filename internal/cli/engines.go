package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/varvedb/varve/internal/build"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/store/driver"
)

// enginesCmd lists the engines.
type enginesCmd struct {
	JSON bool `help:"Print JSON."`
}

// engineInfo is one engine as printed.
type engineInfo struct {
	Name         string              `json:"name"`
	Version      string              `json:"version"`
	Library      string              `json:"library"`
	Dialect      driver.Dialect      `json:"dialect"`
	Durabilities []driver.Durability `json:"durabilities"`
	Parameters   map[string]string   `json:"parameters"`
	Gaps         []driver.Gap        `json:"gaps"`
}

func linkedEngines() []engineInfo {
	var list []engineInfo
	for _, d := range driver.Linked() {
		list = append(list, engineInfo{
			Name: d.Name, Version: d.Info.Version, Library: d.Info.Library, Dialect: d.Info.Dialect,
			Durabilities: d.Capabilities.Durabilities, Parameters: d.Params, Gaps: d.Capabilities.Gaps,
		})
	}
	return list
}

// Run prints the engines of this binary and, if it is installed, of the other
// binary for engines that cannot be linked here.
func (c *enginesCmd) Run(e *env) error {
	list := linkedEngines()
	for _, listed := range engine.All {
		for _, remote := range []bool{false, true} {
			if remote && listed.Client == "" || linked(listed.Name, remote) {
				continue
			}
			others, err := siblingEngines(e, listed, remote)
			if err != nil {
				fmt.Fprintf(e.stderr, "varve: %s is not linked here, and its own binary could not be run: %v\n", listed.Name, err)
			}
			list = append(list, others...)
		}
	}
	slices.SortStableFunc(list, func(a, b engineInfo) int { return engine.Rank(a.Name) - engine.Rank(b.Name) })
	if c.JSON {
		return printJSON(e.stdout, list)
	}
	if err := printEngines(e.stdout, list); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "\nWhat an engine does not do that others do:")
	for _, info := range list {
		for _, gap := range info.Gaps {
			fmt.Fprintf(e.stdout, "  %s: %s: %s\n", info.Name, gap.Name, gap.Reason)
		}
	}
	return nil
}

// versionCmd prints the program's version.
type versionCmd struct {
	JSON bool `help:"Print JSON."`
}

// Run prints the versions of the program and of its engines.
func (c *versionCmd) Run(e *env) error {
	info, engines := build.Read(), linkedEngines()
	if c.JSON {
		return printJSON(e.stdout, struct {
			build.Info
			Engines []engineInfo `json:"engines"`
		}{info, engines})
	}
	fmt.Fprintf(e.stdout, "varve %s\n", info)
	return printEngines(e.stdout, engines)
}

func printEngines(out io.Writer, list []engineInfo) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ENGINE\tVERSION\tLIBRARY\tDURABILITY")
	for _, info := range list {
		levels := strings.ReplaceAll(strings.Trim(fmt.Sprint(info.Durabilities), "[]"), " ", ", ")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", info.Name, cmp.Or(info.Version, "-"), info.Library, levels)
	}
	return w.Flush()
}

func printJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
