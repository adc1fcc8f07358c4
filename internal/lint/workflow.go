package lint

import (
	"regexp"
	"strings"
)

var (
	action = regexp.MustCompile(`^\s*(?:- )?uses:\s*(\S+)(.*)$`)
	// A tag can be moved; a commit cannot. The tag stands beside it for people.
	pinned = regexp.MustCompile(`^[^@]+@[0-9a-f]{40}$`)
	tagged = regexp.MustCompile(`^ # v\d+\.\d+\.\d+$`)
	// latest is a tool whose version changes by itself.
	latest = regexp.MustCompile(`\S+@(latest|main|master)\b`)
)

// CheckWorkflow finds, in a workflow of GitHub, actions that are not pinned to a
// commit with its tag beside it, and tools without a version.
func CheckWorkflow(name string, text []byte) []Problem {
	var problems []Problem
	for i, line := range strings.Split(string(text), "\n") {
		if m := action.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[1], "./") {
			if !pinned.MatchString(m[1]) || !tagged.MatchString(m[2]) {
				problems = append(problems, Problem{Path: name, Line: i + 1, Message: m[1] + ": pin it to a commit, with ` # vN.N.N` behind it"})
			}
		} else if m := latest.FindString(line); m != "" {
			problems = append(problems, Problem{Path: name, Line: i + 1, Message: m + ": name a version"})
		}
	}
	return problems
}
