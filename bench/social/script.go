package social

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

//go:embed scripts/*.yaml
var scriptFiles embed.FS

// DefaultScript is the script that is run when none is named: AuthZed's mix.
const DefaultScript = "authzed"

// Script says what is asked of a store, how often and for how long.
type Script struct {
	Name string

	// Phases follow each other on the same store.
	Phases []Phase

	// Steps are chosen at random by their weights.
	Steps []Step

	WarmUp      time.Duration // before each phase, not recorded
	Connections int           // requests at a time
	Poisson     bool          // arrivals do not know of each other; else at equal distances

	// Active is AuthZed's sampling factor: which part of the users, content and
	// interactions takes part (above 0, at most 1). Of 1,000 users and 0.01,
	// these are numbers 1, 101, 201, …
	Active float64

	// Staleness is how long a connection answers from the same read view; 0 is
	// a view for each request. Zanzibar's and SpiceDB's default is 5 s.
	Staleness time.Duration

	// GiveUp is how long a request waits for a connection before it is
	// skipped, which counts as a failure.
	GiveUp time.Duration
}

// Phase is a part of a run with a rate of its own.
type Phase struct {
	Rate     float64 // requests a second
	Duration time.Duration
}

// Step is a kind of request. One of Check, Lookup and Write is set.
type Step struct {
	Weight float64
	Check  string // "user", "content" or "interaction": may somebody see one
	Lookup string // "content": what may somebody see; "subjects": who may see a piece of content
	Limit  int    // of results of the look-up of content
	Write  Toggle
}

// What a script has when it does not say.
const (
	defaultConnections = 8
	defaultActive      = 0.1
	defaultGiveUp      = time.Second
	defaultLimit       = 100
	defaultWarmUp      = time.Second
)

// The names of look-ups in scripts.
const (
	lookupContent  = "content"
	lookupSubjects = "subjects"
)

// Name returns the step's name in results: "check-content", "write-follower".
func (s Step) Name() string {
	switch {
	case s.Check != "":
		return "check-" + s.Check
	case s.Lookup != "":
		return "lookup-" + s.Lookup
	}
	return "write-" + string(s.Write)
}

// Scripts returns the names of the scripts that come with the package.
func Scripts() []string {
	found, _ := fs.Glob(scriptFiles, "scripts/*.yaml") // the pattern is good
	for i, name := range found {
		found[i] = strings.TrimSuffix(path.Base(name), ".yaml")
	}
	slices.Sort(found)
	return found
}

// LoadScript returns a script that comes with the package.
func LoadScript(name string) (*Script, error) {
	text, err := scriptFiles.ReadFile("scripts/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("no script %q; known are %s", name, strings.Join(Scripts(), ", "))
	}
	return ParseScript(text)
}

// Length returns how long a script takes without loading.
func (s *Script) Length() time.Duration {
	var sum time.Duration
	for _, p := range s.Phases {
		sum += s.WarmUp + p.Duration
	}
	return sum
}
