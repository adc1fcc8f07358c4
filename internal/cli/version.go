package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/varvedb/varve/internal/build"
)

// versionCmd tells what this is.
type versionCmd struct {
	JSON bool `help:"Print JSON."`
}

// Run prints the versions of the program and of the engines in it.
func (c *versionCmd) Run(e *env) error {
	info, engines := build.Read(), linkedEngines()
	if c.JSON {
		type version struct {
			Name    string `json:"name"`
			Version string `json:"version"`
			Library string `json:"library"`
		}
		list := make([]version, len(engines))
		for i, in := range engines {
			list[i] = version{in.Name, in.Version, in.Library}
		}
		return printJSON(e.stdout, struct {
			build.Info
			Engines []version `json:"engines"`
		}{info, list})
	}
	w := tabwriter.NewWriter(e.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "varve %s\n", info)
	for _, in := range engines {
		fmt.Fprintf(w, "%s\t%s\t%s\n", in.Name, orDash(in.Version), in.Library)
	}
	return w.Flush()
}
