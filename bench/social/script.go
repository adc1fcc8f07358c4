package social

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

//go:embed scripts/*.yaml
var scriptFiles embed.FS

// DefaultScript is the script that is run when none is named: AuthZed's mix.
const DefaultScript = "authzed"

// ErrScript: a load script is not understood. The message names the line, or the
// key and the number of the phase or step.
var ErrScript = errors.New("load script")

// Script says what is asked of a store, how often and for how long. ParseScript
// says what is left out of a file.
type Script struct {
	Name        string        // in results: lower-case letters, digits and dashes
	Phases      []Phase       // follow each other on the same store
	Steps       []Step        // chosen at random by their weights
	WarmUp      time.Duration // before each phase, not recorded
	Connections int           // requests at a time
	Arrivals    string        // "poisson": they do not know of each other; "fixed": at equal distances

	// Active is AuthZed's sampling factor: which part of the users, content and
	// interactions takes part (above 0, at most 1). Of 1,000 users and 0.01,
	// these are numbers 1, 101, 201, …
	Active Share

	// Staleness is how long a connection answers from the same read view; 0 is
	// a view for each request. Zanzibar's and SpiceDB's default is 5 s.
	Staleness time.Duration

	// GiveUp is how long a request waits for a connection before it is
	// skipped, which counts as a failure.
	GiveUp time.Duration `yaml:"give-up"`
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
	Write  string // one of Toggles
}

// Share is a part of something, 0…1. Scripts may also give it as "1%".
type Share float64

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *Share) UnmarshalYAML(n *yaml.Node) error {
	number, percent := strings.CutSuffix(n.Value, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	*s = Share(v)
	return err
}

// The names of look-ups in scripts.
const (
	lookupContent  = "content"
	lookupSubjects = "subjects"
)

// stepNames are the names of all that can be asked.
var stepNames = []string{
	"check-user", "check-content", "check-interaction", "lookup-content", "lookup-subjects",
	"write-follower", "write-blocked", "write-visibility",
}

// Name returns the step's name in results: "check-content", "write-follower".
func (s Step) Name() string {
	name := ""
	for _, part := range [...][2]string{{"check-", s.Check}, {"lookup-", s.Lookup}, {"write-", s.Write}} {
		if part[1] != "" {
			name += part[0] + part[1]
		}
	}
	return name
}

// Scripts returns the names of the scripts that come with the package, in order.
func Scripts() []string {
	found, _ := fs.Glob(scriptFiles, "scripts/*.yaml") // the pattern is good
	for i, name := range found {
		found[i] = strings.TrimSuffix(path.Base(name), ".yaml")
	}
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

// ParseScript reads a load script, one document of YAML. It is strict: what it
// does not know is an error, and so is a value out of range. The keys:
//
//	name         in results: lower-case letters, digits and dashes
//	rate         requests a second
//	duration     such as 10s, without the warm-up
//	phases       a list of {rate, duration}, in place of the two
//	warmup       before each phase; 1s
//	connections  requests at a time; 8
//	arrivals     poisson or fixed; poisson
//	active       which part of all objects takes part, such as 1% or 0.01; 10%
//	staleness    how long a connection keeps a read view; 0s
//	give-up      how long a request waits for a connection; 1s
//	steps        a list of kinds of requests, each with a weight and one of
//	               check: user, content or interaction
//	               lookup: content (with a limit; 100) or subjects
//	               write: follower, blocked or visibility
func ParseScript(text []byte) (*Script, error) {
	var file struct {
		Script `yaml:",inline"`
		Phase  `yaml:",inline"`
	}
	file.Script = Script{WarmUp: time.Second, Connections: 8, Arrivals: "poisson", Active: 0.1, GiveUp: time.Second}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrScript, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: a second document: one is read", ErrScript)
	}
	s := &file.Script
	if file.Phase != (Phase{}) {
		if len(s.Phases) > 0 {
			return nil, fmt.Errorf("%w: phases have their own rate and duration: leave out the script's", ErrScript)
		}
		s.Phases = []Phase{file.Phase}
	}
	for i, step := range s.Steps {
		if step.Lookup == lookupContent && step.Limit == 0 {
			s.Steps[i].Limit = 100
		}
	}
	return s, s.Check()
}

// scriptName is what names of benchmarks take.
var scriptName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// Check fails with ErrScript when something is missing or out of range.
func (s *Script) Check() (err error) {
	want := func(ok bool, format string, args ...any) {
		if !ok && err == nil {
			err = fmt.Errorf("%w: "+format, append([]any{ErrScript}, args...)...)
		}
	}
	within := func(d, least time.Duration) bool { return d >= least && d <= 24*time.Hour }
	want(scriptName.MatchString(s.Name), "name: %q: want lower-case letters, digits and dashes", s.Name)
	want(len(s.Phases) > 0, "give rate and duration, or phases")
	want(len(s.Steps) > 0, "steps: want a list of at least one")
	want(s.Connections >= 1 && s.Connections <= 1024, "connections: %d: want 1 to 1024", s.Connections)
	want(s.Arrivals == "poisson" || s.Arrivals == "fixed", "arrivals: %q: want poisson or fixed", s.Arrivals)
	want(s.Active > 0 && s.Active <= 1, "active: %v: want a part above 0, at most 1", s.Active)
	want(within(s.WarmUp, 0) && within(s.Staleness, 0) && within(s.GiveUp, time.Millisecond), "warmup, staleness and give-up: want 0s (give-up 1ms) to 24h")
	for i, p := range s.Phases {
		want(p.Rate > 0 && p.Rate <= 1e7 && within(p.Duration, time.Millisecond),
			"phase %d: rate %v for %s: want a rate above 0, at most 1e+07, and a duration from 1ms to 24h", i+1, p.Rate, p.Duration)
	}
	names := map[string]bool{}
	for i, step := range s.Steps {
		name, limited := step.Name(), step.Lookup == lookupContent
		want(slices.Contains(stepNames, name), "step %d: %q: want one of %s", i+1, name, strings.Join(stepNames, ", "))
		want(!names[name], "step %d: %s is there already: add the weights", i+1, name)
		want(step.Weight > 0 && step.Weight <= 1e9, "step %d: weight: %v: want a number above 0", i+1, step.Weight)
		want(limited == (step.Limit != 0) && step.Limit >= 0 && step.Limit <= 100_000,
			"step %d: limit: %d: want 1 to 100000, of a look-up of content", i+1, step.Limit)
		names[name] = true
	}
	return err
}

// Length returns how long a script takes without loading.
func (s *Script) Length() time.Duration {
	var sum time.Duration
	for _, p := range s.Phases {
		sum += s.WarmUp + p.Duration
	}
	return sum
}
