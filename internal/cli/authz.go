package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/varvedb/varve/bench/rebac"
	"github.com/varvedb/varve/bench/social"
	"github.com/varvedb/varve/internal/lab"
)

// authzCmd is the permission workloads: who may do what with which resource.
type authzCmd struct {
	Rebac  authzRebacCmd  `cmd:"" help:"Check and list permissions through organizations, groups and their hierarchy, on each engine in its own process: experiment G1."`
	Social authzSocialCmd `cmd:"" help:"Check and write permissions of a social graph at target rates, and hold them against service levels: experiment G2."`
}

// authzRebacCmd runs the permission benchmark on engines, one after the other.
type authzRebacCmd struct {
	engineFlags
	recordFlags
	lab.PermissionOptions
	Duration time.Duration `min:"1ms" max:"24h" help:"Length of each measurement." default:"5s"`
	Seed     uint64        `any:"" help:"Of data and questions." default:"1"`
	Dir      string        `help:"Directory for the databases, which are removed afterwards; the system's temporary directory when not given." type:"existingdir"`
	Engines  []string      `help:"Engines to measure, or URLs of servers of yours." default:"${engines}"`
}

// Run measures.
func (c *authzRebacCmd) Run(e *env) error {
	if _, err := rebac.ParseSize(c.Size); err != nil {
		return usageError{fmt.Errorf("--size: %w", err)}
	}
	if len(c.Clients) == 0 || slices.Min(c.Clients) < 1 || c.Duration <= 0 || c.Batch < 1 {
		return usageError{errors.New("--clients, --duration and --batch must be positive")}
	}
	o := lab.Options{Seed: c.Seed, Phase: c.Duration, Permissions: &c.PermissionOptions}
	x := entry{engineFlags: c.engineFlags, recordFlags: c.recordFlags, id: "G1", engines: c.Engines, options: o, child: child{dir: c.Dir}}
	_, err := x.run(e)
	return err
}

// authzSocialCmd puts load on social graphs.
type authzSocialCmd struct {
	engineFlags
	recordFlags
	lab.SocialOptions
	Engines  []string      `help:"Engines to measure, or URLs of servers of yours." default:"${engines}"`
	Duration time.Duration `min:"1ms" max:"24h" help:"Length of the measurement at each rate." default:"10s"`
	Seed     uint64        `any:"" help:"Of the graph, of arrivals and of what is asked." default:"1"`
	Timeout  time.Duration `min:"1s" max:"720h" help:"Time after which an engine is ended; its records so far are kept." default:"30m"`
}

// Run measures. Missing the service levels is a result and no error.
func (c *authzSocialCmd) Run(e *env) error {
	for _, n := range c.Relationships {
		if n < social.MinRelationships || n > social.MaxRelationships {
			return usageError{fmt.Errorf("--relationships: %d: give numbers from %d to %d", n, social.MinRelationships, social.MaxRelationships)}
		}
	}
	o := lab.Options{Seed: c.Seed, Phase: c.Duration, Social: &c.SocialOptions}
	x := entry{engineFlags: c.engineFlags, recordFlags: c.recordFlags, id: "G2", engines: c.Engines, options: o, child: child{cache: true, timeout: c.Timeout}}
	got, err := x.run(e)
	if got != nil && len(got.Lines) > 0 {
		fmt.Fprintf(e.stdout, "Service levels: p95 of checks below %s, of writes below %s, success at least %.1f %%; levels-missed counts those that were not met.\n",
			social.CheckLimit, social.WriteLimit, 100*social.SuccessLimit)
	}
	return err
}
