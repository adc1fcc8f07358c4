// Mutants makes plausible mistakes, one at a time, and tells which tests notice:
//
//	go run -C internal/tools ./mutants
//	go run -C internal/tools ./mutants -only=internal/lsm -timeout=5m
//
// The mistakes are in mutants.txt. Files stay as they are: the compiler is given others in
// their place (go help build, -overlay).
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
	"strings"
	"time"
)

//go:embed mutants.txt
var data string

var (
	only    = flag.String("only", "", "try the mutants with this text in their first line")
	root    = flag.String("root", "../..", "the repository")
	timeout = flag.Duration("timeout", 4*time.Minute, "how long one run of tests may take")
)

// mutant is a mistake: a text that a file has once, and what takes its place.
type mutant struct{ file, what, before, after string }

// rule is which tests to run for files that begin with a prefix.
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
	var broken error // of mutants that could not be tried
	for _, m := range mutants {
		start := time.Now()
		by, err := m.caught(rules)
		switch {
		case err != nil:
			broken, by = errors.Join(broken, fmt.Errorf("%s: %s: %w", m.file, m.what, err)), "NOT TRIED"
		case by == "":
			by = "NOT CAUGHT"
		default:
			caught++
		}
		fmt.Printf("%s: %s\n\t%s, %.0f s\n", m.file, m.what, by, time.Since(start).Seconds())
	}
	fmt.Printf("%d of %d are caught\n", caught, len(mutants))
	return broken
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

// caught makes the mistake and returns which test failed, or "" when none did.
func (m mutant) caught(rules []rule) (string, error) {
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
	for _, r := range rules {
		if !strings.HasPrefix(m.file, r.prefix) {
			continue
		}
		args := append([]string{"test", "-overlay=" + overlay, "-vet=off", "-failfast", "-timeout=" + timeout.String()}, r.args...)
		cmd := exec.Command("go", args...)
		cmd.Dir = *root
		if out, err := cmd.CombinedOutput(); err != nil {
			return failure(string(out))
		}
	}
	return "", nil
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// failure returns the innermost test that failed, by its output.
func failure(out string) (string, error) {
	if strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]") {
		return "", fmt.Errorf("it does not compile: %s", out)
	}
	by := "a panic"
	if _, hangs, timedOut := strings.Cut(out, "running tests:\n"); timedOut {
		by = "a time-out of " + strings.Fields(hangs)[0]
	}
	for _, match := range failed.FindAllStringSubmatch(out, -1) {
		by = match[1]
	}
	return by, nil
}
