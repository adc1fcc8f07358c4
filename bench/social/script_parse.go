package social

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Limits of a script.
const (
	maxScriptBytes = 1 << 20
	maxRate        = 1e7
	maxConnections = 1024
	maxLimit       = 100_000
	maxDuration    = 24 * time.Hour
)

// ErrScript: a load script is not understood. The message names the line.
var ErrScript = errors.New("load script")

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
	if len(text) > maxScriptBytes {
		return nil, fmt.Errorf("%w: %d bytes: at most %d are read", ErrScript, len(text), maxScriptBytes)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: empty: give name, rate, duration and steps", ErrScript)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrScript, err)
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: line %d: a second document: one is read", ErrScript, max(second.Line, 1))
	}
	s := &Script{
		Connections: defaultConnections, Active: defaultActive, GiveUp: defaultGiveUp,
		WarmUp: defaultWarmUp, Poisson: true,
	}
	if err := s.read(doc.Content[0]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrScript, err)
	}
	return s, nil
}

// at is an error at a node's line.
func at(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: "+format, append([]any{n.Line}, args...)...)
}

// field reads the value of a key.
type field func(*yaml.Node) error

// mapping reads a mapping whose keys are fields, each at most once, and returns
// those that it has.
func mapping(n *yaml.Node, what string, fields map[string]field) (map[string]bool, error) {
	if n.Kind != yaml.MappingNode {
		return nil, at(n, "%s: want keys with values", what)
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, known := fields[key.Value]
		switch {
		case !known:
			return nil, at(key, "%s: unknown key %q; known are %s", what, key.Value, keys(fields))
		case seen[key.Value]:
			return nil, at(key, "%s: key %q twice", what, key.Value)
		case value.Kind == yaml.AliasNode:
			return nil, at(value, "%s: aliases are not read", key.Value)
		}
		seen[key.Value] = true
		if err := read(value); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

func keys(fields map[string]field) string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// scriptName is what names of benchmarks take.
var scriptName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

func (s *Script) read(n *yaml.Node) error {
	var single Phase
	seen, err := mapping(n, "script", map[string]field{
		"name":        word("name", &s.Name, func(v string) bool { return scriptName.MatchString(v) }, "lower-case letters, digits and dashes"),
		"rate":        number("rate", &single.Rate, maxRate),
		"duration":    duration("duration", &single.Duration, time.Millisecond),
		"phases":      s.readPhases,
		"warmup":      duration("warmup", &s.WarmUp, 0),
		"connections": whole("connections", &s.Connections, maxConnections),
		"arrivals":    s.readArrivals,
		"active":      number("active", &s.Active, 1),
		"staleness":   duration("staleness", &s.Staleness, 0),
		"give-up":     duration("give-up", &s.GiveUp, time.Millisecond),
		"steps":       s.readSteps,
	})
	switch {
	case err != nil:
		return err
	case !seen["name"]:
		return at(n, "script: no name")
	case !seen["steps"]:
		return at(n, "script: no steps")
	case seen["phases"] && (seen["rate"] || seen["duration"]):
		return at(n, "script: phases have their own rate and duration: leave out the script's")
	case seen["phases"]:
		return nil
	case !seen["rate"] || !seen["duration"]:
		return at(n, "script: give rate and duration, or phases")
	}
	s.Phases = []Phase{single}
	return nil
}

func (s *Script) readPhases(n *yaml.Node) error {
	return sequence(n, "phases", func(n *yaml.Node) error {
		var p Phase
		seen, err := mapping(n, "phase", map[string]field{
			"rate":     number("rate", &p.Rate, maxRate),
			"duration": duration("duration", &p.Duration, time.Millisecond),
		})
		if err == nil && len(seen) < 2 {
			err = at(n, "phase: give rate and duration")
		}
		s.Phases = append(s.Phases, p)
		return err
	})
}

func (s *Script) readArrivals(n *yaml.Node) error {
	var v string
	err := word("arrivals", &v, func(v string) bool { return v == "poisson" || v == "fixed" }, "poisson or fixed")(n)
	s.Poisson = v == "poisson"
	return err
}

func (s *Script) readSteps(n *yaml.Node) error {
	lines := map[string]int{}
	return sequence(n, "steps", func(n *yaml.Node) error {
		step, err := readStep(n)
		if err != nil {
			return err
		}
		if line, twice := lines[step.Name()]; twice {
			return at(n, "step: %s is there on line %d: add the weights", step.Name(), line)
		}
		lines[step.Name()] = n.Line
		s.Steps = append(s.Steps, step)
		return nil
	})
}

func readStep(n *yaml.Node) (s Step, err error) {
	var write string
	among := func(names ...string) (func(string) bool, string) {
		return func(v string) bool { return slices.Contains(names, v) }, strings.Join(names, ", ")
	}
	isKind, kindList := among(kindNames[:]...)
	isLookup, lookupList := among(lookupContent, lookupSubjects)
	toggles := make([]string, len(Toggles))
	for i, t := range Toggles {
		toggles[i] = string(t)
	}
	isToggle, toggleList := among(toggles...)
	seen, err := mapping(n, "step", map[string]field{
		"weight": number("weight", &s.Weight, 1e9),
		"check":  word("check", &s.Check, isKind, kindList),
		"lookup": word("lookup", &s.Lookup, isLookup, lookupList),
		"limit":  whole("limit", &s.Limit, maxLimit),
		"write":  word("write", &write, isToggle, toggleList),
	})
	if err != nil {
		return s, err
	}
	s.Write = Toggle(write)
	given := 0
	for _, key := range []string{"check", "lookup", "write"} {
		if seen[key] {
			given++
		}
	}
	switch {
	case given != 1:
		return s, at(n, "step: give one of check, lookup and write")
	case !seen["weight"]:
		return s, at(n, "step: no weight")
	case seen["limit"] && s.Lookup != lookupContent:
		return s, at(n, "step: limit is for a look-up of content")
	}
	if s.Lookup == lookupContent && !seen["limit"] {
		s.Limit = defaultLimit
	}
	return s, nil
}
