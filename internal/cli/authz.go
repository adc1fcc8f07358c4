package cli

import (
	"fmt"
	"slices"
	"strings"
)

// authzCmd is the permission workloads: who may do what with which resource.
type authzCmd struct {
	Rebac  authzRebacCmd  `cmd:"" help:"Check and list permissions through organizations, groups and their hierarchy, on each engine in its own process."`
	Social authzSocialCmd `cmd:"" help:"Run a load script over a social graph at target rates, and hold it against service levels."`

	RebacWorker authzRebacWorkerCmd `cmd:"" hidden:"" help:"Measure one engine for rebac; prints JSON."`
}

// knownEngines refuses names that are no engine's.
func knownEngines(names []string) error {
	for _, name := range names {
		if !slices.Contains(allEngines, name) {
			return usageError{fmt.Errorf("unknown engine %q; known are %s", name, strings.Join(allEngines, ", "))}
		}
	}
	return nil
}
