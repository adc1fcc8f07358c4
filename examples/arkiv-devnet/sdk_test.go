package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An sdk is a library of Arkiv's, as its language installs it.
type sdk struct {
	name, program, script string
	fence                 string   // of its code in README.md
	files                 []string // that say what is installed
	install               []string
}

var sdks = []sdk{
	{
		name: "javascript", program: "npm", script: "session.mjs", fence: "js", files: []string{"package.json", "package-lock.json", ".npmrc"},
		install: []string{"npm", "ci"},
	},
	{
		name: "python", program: "python3", script: "session.py", fence: "python", files: []string{"requirements.txt"},
		install: []string{"python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--target", ".", "-r", "requirements.txt"},
	},
}

// TestSDK writes and reads by means of Arkiv's own libraries, as they are published.
func TestSDK(t *testing.T) {
	if testing.Short() {
		t.Skip("installs libraries of other languages")
	}
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			dir := s.installed(t)
			for _, layout := range []string{"compact", "arkiv"} {
				t.Run(layout, func(t *testing.T) {
					t.Parallel() // they wait for the most part
					text, err := os.ReadFile(filepath.Join("testdata", "sdk", s.script))
					check(t, err)
					s.run(t, dir, layout, func(string) string { return string(text) })
				})
			}
			t.Run("readme", func(t *testing.T) {
				t.Parallel()
				out := s.run(t, dir, "compact", func(url string) string {
					_, rest, _ := strings.Cut(string(readme), "```"+s.fence+"\n")
					code, _, _ := strings.Cut(rest, "```")
					return strings.ReplaceAll(code, "http://127.0.0.1:8545", url)
				})
				if !strings.Contains(out, "hello 1") {
					t.Errorf("it says %q", out)
				}
			})
		})
	}
}

// run runs a script of the library against a devnet, and returns what it prints.
func (s *sdk) run(t *testing.T, dir, layout string, script func(url string) string) string {
	d := newDevnet(t, layout)
	beside := t.TempDir() // node looks for modules beside the program
	path := filepath.Join(beside, s.script)
	check(t, os.WriteFile(path, []byte(script(d.url)), 0o644))
	program := s.program
	if program == "npm" {
		program = "node"
		check(t, os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(beside, "node_modules")))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program, path, d.url, "ws"+strings.TrimPrefix(d.url, "http"), "0x"+keys[0], "0x"+keys[1])
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+dir)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d.verify(t)
	return string(out)
}

// installed returns where the library is, which it installs once into the user's cache: the
// place is that of the main module's tests.
func (s *sdk) installed(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath(s.program); err != nil {
		t.Skipf("%s is not installed here: %v", s.program, err)
	}
	cache, err := os.UserCacheDir()
	check(t, err)
	sum := sha256.New()
	for _, name := range s.files {
		text, err := os.ReadFile(filepath.Join("testdata", "sdk", name))
		check(t, err)
		fmt.Fprintf(sum, "%s %d ", name, len(text))
		sum.Write(text)
	}
	dir := filepath.Join(cache, "varve", fmt.Sprintf("sdk-%s-%x", s.name, sum.Sum(nil)[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	check(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	draft, err := os.MkdirTemp(filepath.Dir(dir), "sdk-") // so that what is there is whole
	check(t, err)
	defer os.RemoveAll(draft)
	for _, name := range s.files {
		text, err := os.ReadFile(filepath.Join("testdata", "sdk", name))
		check(t, err)
		check(t, os.WriteFile(filepath.Join(draft, name), text, 0o644))
	}
	install := exec.CommandContext(t.Context(), s.install[0], s.install[1:]...)
	install.Dir = draft
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("%s cannot be had here: %v: %s", s.name, err, out)
	}
	if err := os.Rename(draft, dir); err != nil {
		if _, there := os.Stat(dir); there != nil { // another test was first
			t.Fatal(err)
		}
	}
	return dir
}
