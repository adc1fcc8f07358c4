package cli

import (
	"fmt"

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
		return printJSON(e.stdout, struct {
			build.Info
			Engines []engineInfo `json:"engines"`
		}{info, engines})
	}
	fmt.Fprintf(e.stdout, "varve %s\n", info)
	return printEngines(e.stdout, engines)
}
