package lint

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	// The words are spelt in two parts so that this file passes its own rule.
	unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	// The home and mount directories of one machine mean nothing on another.
	machinePath = regexp.MustCompile(`(^|[\s"'(=:])/(wo` + `rk|ro` + `ot|home/[a-z]+)/`)
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// CheckText finds, in a file of any kind, marks of unfinished work and paths of
// one machine.
func CheckText(name string, text []byte) []Problem {
	var problems []Problem
	for i, line := range strings.Split(string(text), "\n") {
		if m := unfinished.FindString(line); m != "" {
			problems = append(problems, Problem{Path: name, Line: i + 1, Message: m + ": do it, or open an issue"})
		}
		if machinePath.MatchString(line) {
			problems = append(problems, Problem{Path: name, Line: i + 1, Message: "path of one machine"})
		}
	}
	return problems
}

// CheckLinks finds links in a Markdown file to files and headings that are not there.
// Name is relative to root.
func CheckLinks(root, name string, text []byte) []Problem {
	var problems []Problem
	prose, _ := Fences(text)
	for i, line := range prose {
		for _, m := range link.FindAllStringSubmatch(line, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue
			}
			path, within := filepath.Join(root, filepath.Dir(name), target), text
			if _, err := os.Stat(path); err != nil && target != "" {
				problems = append(problems, Problem{Path: name, Line: i + 1, Message: "dead link " + m[1]})
				continue
			}
			if strings.HasSuffix(target, ".md") {
				within, _ = os.ReadFile(path) // of which an anchor says what is wrong
			}
			if anchor != "" && !anchors(within)[anchor] {
				problems = append(problems, Problem{Path: name, Line: i + 1, Message: "no heading for " + m[1]})
			}
		}
	}
	return problems
}

// The sections of a decision record, in Nygard's form.
var sections = []string{"## Status", "## Context", "## Decision", "## Consequences"}

// CheckDecisions checks that decision records are numbered from 1 without gaps
// and have all sections in order. Records maps file names to their text.
func CheckDecisions(records map[string][]byte) []Problem {
	var problems []Problem
	numbers := make(map[string]bool, len(records))
	for name, text := range records {
		number, _, _ := strings.Cut(name, "-")
		if numbers[number] {
			problems = append(problems, Problem{Path: name, Message: "number taken"})
		}
		numbers[number] = true
		rest := string(text)
		for _, section := range sections {
			_, after, ok := strings.Cut(rest, "\n"+section+"\n")
			if !ok {
				problems = append(problems, Problem{Path: name, Message: "no section " + section + " in its place"})
				break
			}
			rest = after
		}
	}
	for i := 1; i <= len(numbers); i++ {
		if n := fmt.Sprintf("%04d", i); !numbers[n] {
			problems = append(problems, Problem{Path: "docs/adr", Message: "no record " + n})
		}
	}
	return sorted(problems)
}

var (
	title  = regexp.MustCompile(`^# (\d+)\. (.*)\n`)
	status = regexp.MustCompile(`(?s)\n## Status\n\n(.*?)\n## `)
	record = regexp.MustCompile(`\]\((\d{4}-[^)#]*)\)`)
)

// Superseded tells of a decision record that a later one has taken its place. It tells of what was.
func Superseded(text []byte) bool {
	return bytes.Contains(text, []byte("\n## Status\n\nSuperseded by "))
}

// CheckIndex checks that the index has a line for each decision record, with its title and
// the numbers of the later ones that its status names, and that records name each other
// there.
func CheckIndex(index []byte, records map[string][]byte) []Problem {
	var problems []Problem
	names := map[string][]string{}
	for name, text := range records {
		for _, m := range record.FindAllStringSubmatch(string(status.Find(text)), -1) {
			names[name] = append(names[name], m[1])
		}
		slices.Sort(names[name])
	}
	for name, text := range records {
		var later []string
		for _, other := range names[name] {
			if other > name {
				later = append(later, strings.TrimLeft(other[:4], "0"))
			}
			if !slices.Contains(names[other], name) {
				problems = append(problems, Problem{Path: other, Message: "its status does not name " + name + ", whose status names it"})
			}
		}
		line := title.ReplaceAllString(string(title.Find(text)), "- $1. [$2]("+name+")")
		if later != nil {
			line += ", changed by " + strings.Join(later, ", ")
		}
		if !strings.Contains(string(index), "\n"+line+"\n") {
			problems = append(problems, Problem{Path: "docs/adr/README.md", Message: "no line " + line})
		}
	}
	return sorted(problems)
}

const (
	testBegin = "<!-- test command -->"
	testEnd   = "<!-- end -->"
)

// TestCommand returns the command between the README's markers, which .ci/run
// executes: what readers are told and what CI does cannot differ.
func TestCommand(readme []byte) (string, error) {
	_, rest, ok := strings.Cut(string(readme), testBegin+"\n```sh\n")
	if !ok {
		return "", fmt.Errorf("no %q followed by a sh block", testBegin)
	}
	command, _, ok := strings.Cut(rest, "\n```\n"+testEnd)
	if !ok || strings.Contains(rest, testBegin) {
		return "", fmt.Errorf("want one block that ends before %q", testEnd)
	}
	return command, nil
}
