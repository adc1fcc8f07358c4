// Mutants makes plausible mistakes, one at a time, and reports which tests
// notice them:
//
//	go run -C internal/tools ./mutants
//	go run -C internal/tools ./mutants -only=internal/lsm -timeout=20m
//
// The mistakes are in mutants.txt. Files stay as they are, because the compiler
// is given others in their place (go help build, -overlay).
//
// A mutant is caught when a test fails, and the test is named. It lived when all
// tests passed. Otherwise it is undecided: it did not compile, or a run of tests
// reached its time limit before a test failed. A time limit is no catch, because
// a loaded machine reaches it without any mistake.
package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed mutants.txt
var data string

var (
	only    = flag.String("only", "", "try the mutants with this text in their first line")
	root    = flag.String("root", "../..", "the repository")
	timeout = flag.Duration("timeout", 15*time.Minute, "how long one run of tests may take")
)

// mutant is a mistake: a text that occurs once in a file, and its replacement.
type mutant struct{ file, what, before, after string }

// rule lists the tests to run for files with a path prefix.
type rule struct {
	prefix string
	args   []string
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	mutants, rules := parse()
	caught := 0
	var undecided error
	for _, m := range mutants {
		start := time.Now()
		by, err := m.try(rules)
		outcome := "caught by " + by
		switch {
		case by != "":
			caught++
		case err != nil:
			outcome = fmt.Sprint("UNDECIDED: ", err)
			undecided = errors.Join(undecided, fmt.Errorf("%s: %s: %w", m.file, m.what, err))
		default:
			outcome = "LIVED"
		}
		fmt.Printf("%s: %s\n\t%s, %.0f s\n", m.file, m.what, outcome, time.Since(start).Seconds())
	}
	fmt.Printf("%d of %d are caught\n", caught, len(mutants))
	return undecided
}

func parse() (mutants []mutant, rules []rule) {
	var m mutant
	lines := bufio.NewScanner(strings.NewReader(data))
	for lines.Scan() {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		switch kind {
		case "", "#":
		case "%":
			words := strings.Fields(rest)
			rules = append(rules, rule{words[0], words[1:]})
		case "-":
			m.before = rest
		case "+":
			if m.after = rest; strings.Contains(m.file+": "+m.what, *only) {
				mutants = append(mutants, m)
			}
		default:
			m = mutant{file: strings.TrimSuffix(kind, ":"), what: rest}
		}
	}
	return mutants, rules
}

// try makes the mistake, runs tests, and returns the test that failed. Without
// one the mutant lived if err is nil, and is undecided otherwise.
func (m mutant) try(rules []rule) (string, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path, err := filepath.Abs(filepath.Join(*root, m.file))
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.before); n != 1 {
		return "", fmt.Errorf("the text is there %d times: %s", n, m.before)
	}
	changed, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), m.before, m.after, 1)), 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return "", err
	}
	// Run the tests of each rule until one fails. A run that reaches its time
	// limit decides nothing, so the next rule is tried too.
	runs := [][]string{{"./" + filepath.Dir(m.file)}}
	if named := slices.DeleteFunc(slices.Clone(rules), func(r rule) bool {
		return !strings.HasPrefix(m.file, r.prefix)
	}); len(named) > 0 {
		runs = nil
		for _, r := range named {
			runs = append(runs, r.args)
		}
	}
	var undecided error
	for _, args := range runs {
		cmd := exec.Command("go", append([]string{"test", "-overlay=" + overlay, "-vet=off", "-failfast",
			"-timeout=" + timeout.String()}, args...)...)
		cmd.Dir = *root
		out, err := cmd.CombinedOutput()
		if err == nil {
			continue
		}
		by, err := failure(string(out))
		if by != "" {
			return by, nil
		}
		undecided = errors.Join(undecided, err)
	}
	return "", undecided
}

var (
	failed    = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	timedOut  = regexp.MustCompile(`panic: test timed out after \S+\n(\s+running tests:\n\s+\S+)?`)
	panicked  = regexp.MustCompile(`(?m)^(panic|fatal error): .*`)
	longSpace = regexp.MustCompile(`\s+`)
)

// failure parses the output of a failed test run. It returns the innermost test
// that failed, or an error if none did: the mutant did not compile, or the time
// was up.
func failure(out string) (by string, err error) {
	if matches := failed.FindAllStringSubmatch(out, -1); len(matches) > 0 {
		return matches[len(matches)-1][1], nil
	}
	if late := timedOut.FindString(out); late != "" {
		return "", errors.New(longSpace.ReplaceAllString(late, " "))
	}
	// A panic outside of a test's goroutine ends the process, and go test
	// prints no test name.
	if line := panicked.FindString(out); line != "" {
		return line, nil
	}
	return "", fmt.Errorf("no test ran to its end: %s", out)
}
