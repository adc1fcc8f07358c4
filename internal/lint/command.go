package lint

import (
	"regexp"
	"slices"
	"strings"
)

// Command is a command line that a document shows.
type Command struct {
	Path  string
	Line  int
	Words []string // without quotes; the first one is go or varve
}

// String returns the command as path:line: words.
func (c *Command) String() string {
	return Problem{c.Path, c.Line, strings.Join(c.Words, " ")}.String()
}

var (
	fence   = regexp.MustCompile("^\\s*```(\\w*)")
	comment = regexp.MustCompile(`^//\t`)
	// A unit of systemd says where the program is.
	prompt = regexp.MustCompile(`^(\$ |ExecStart=/usr/local/bin/)`)
	// A word, with its quoted parts, or what ends a command.
	word       = regexp.MustCompile(`\d?>>?|<|(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\|&;<>])+|[|;&]`)
	quoted     = regexp.MustCompile(`'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)`)
	assignment = regexp.MustCompile(`^[A-Z_]+=`)
)

// Commands returns the commands of this module and of Go that a text shows: those in
// fenced blocks of a shell's and in indented lines of Markdown, and in indented lines
// of Go comments.
func Commands(name string, text []byte) []Command {
	var found []Command
	fenced, shell := false, false
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		first, line := i+1, lines[i]
		if m := fence.FindStringSubmatch(line); m != nil && strings.HasSuffix(name, ".md") {
			fenced = !fenced
			shell = slices.Contains([]string{"", "sh", "bash", "console"}, m[1])
			continue
		}
		switch {
		case strings.HasSuffix(name, ".go"):
			if line = comment.ReplaceAllString(line, ""); line == lines[i] {
				continue
			}
		case fenced && !shell, !fenced && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "\t"):
			continue
		}
		for strings.HasSuffix(line, "\\") && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(line, "\\") + comment.ReplaceAllString(lines[i], "")
		}
		for _, words := range split(prompt.ReplaceAllString(strings.TrimSpace(line), "")) {
			if words[0] == "go" || words[0] == "varve" {
				found = append(found, Command{Path: name, Line: first, Words: words})
			}
		}
	}
	return found
}

// split splits a shell's line into the words of its commands, without variables that
// are set for them, redirections and comments.
func split(line string) (commands [][]string) {
	var words []string
	redirected := false
	end := func() {
		if len(words) > 0 {
			commands = append(commands, words)
		}
		words = nil
	}
	for _, w := range word.FindAllString(line, -1) {
		switch {
		case strings.HasPrefix(w, "#"):
			end()
			return commands
		case strings.ContainsAny(w[:1], "|&;"):
			end()
		case strings.HasSuffix(w, ">"), w == "<":
			redirected = true
		case redirected:
			redirected = false
		case len(words) > 0 || !assignment.MatchString(w):
			words = append(words, quoted.ReplaceAllString(w, "$1$2$3"))
		}
	}
	end()
	return commands
}
