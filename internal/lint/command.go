package lint

import (
	"regexp"
	"slices"
	"strings"
)

// Command is a command line in a document.
type Command struct {
	Path  string
	Line  int
	Words []string // without quotes
	Shell string   // the whole line that it stands in
}

// String returns the command as path:line: words.
func (c *Command) String() string {
	return Problem{c.Path, c.Line, strings.Join(c.Words, " ")}.String()
}

var (
	fence   = regexp.MustCompile("^\\s*```(\\w*)")
	comment = regexp.MustCompile(`^//\t`)
	// In a systemd unit the line begins with the path of the program.
	prompt = regexp.MustCompile(`^(\$ |ExecStart=/usr/local/bin/)`)
	// A word with its quoted parts, or an operator that ends a command.
	word       = regexp.MustCompile(`\d?>>?|<|(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\|&;<>])+|[|;&]`)
	quoted     = regexp.MustCompile(`'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)`)
	assignment = regexp.MustCompile(`^[A-Z_]+=`)
	inner      = regexp.MustCompile(`\$\([^()]*\)`) // an argument from the output of another command
)

// Commands returns the commands in a text: all commands in fenced shell blocks,
// and in indented lines of Markdown and Go comments only the commands of this
// module and of Go.
func Commands(name string, text []byte) []Command {
	var found []Command
	fenced, shell, said := false, false, false // said: its info string names a shell
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		first, line := i+1, lines[i]
		if m := fence.FindStringSubmatch(line); m != nil && strings.HasSuffix(name, ".md") {
			fenced = !fenced
			said = slices.Contains([]string{"sh", "bash", "console"}, m[1])
			shell = said || m[1] == ""
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
		for i+1 < len(lines) && (strings.HasSuffix(line, "\\") || fenced && said && open(line)) {
			i++
			before, continued := strings.CutSuffix(line, "\\")
			if !continued {
				before += "\n" // within quotes
			}
			line = before + comment.ReplaceAllString(lines[i], "")
		}
		line = prompt.ReplaceAllString(strings.TrimSpace(line), "")
		for _, words := range split(inner.ReplaceAllString(line, "_")) {
			if fenced && said || words[0] == "go" || words[0] == "varve" {
				found = append(found, Command{Path: name, Line: first, Words: words, Shell: line})
			}
		}
	}
	return found
}

// open reports whether a line ends inside single quotes.
func open(line string) bool {
	before, _, _ := strings.Cut(line, " #")
	return !strings.HasPrefix(line, "#") && strings.Count(before, "'")%2 == 1
}

// split splits a shell line into the words of its commands, without variable
// assignments, redirections and comments.
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
