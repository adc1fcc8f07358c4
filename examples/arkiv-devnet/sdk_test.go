package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varvedb/varve/node/rpc/rpctest"
)

// TestSDK writes and reads by means of Arkiv's own libraries, as they are published.
func TestSDK(t *testing.T) {
	if testing.Short() {
		t.Skip("installs libraries of other languages")
	}
	for name, script := range map[string]string{"javascript": "session.mjs", "python": "session.py"} {
		for _, layout := range []string{"compact", "arkiv"} {
			t.Run(name+"/"+layout, func(t *testing.T) {
				t.Parallel() // they wait for the most part
				text, err := os.ReadFile(filepath.Join("testdata", "sdk", script))
				check(t, err)
				session(t, name, layout, func(string) string { return string(text) })
			})
		}
	}
	for name, fence := range map[string]string{"javascript": "js", "python": "python"} {
		t.Run(name+"/readme", func(t *testing.T) {
			t.Parallel()
			out := session(t, name, "compact", func(url string) string {
				_, rest, _ := strings.Cut(string(readme), "```"+fence+"\n")
				code, _, _ := strings.Cut(rest, "```")
				return strings.ReplaceAll(code, "http://127.0.0.1:8545", url)
			})
			if !strings.Contains(out, "hello 1") {
				t.Errorf("it says %q", out)
			}
		})
	}
}

// session runs a script of a library against a devnet, and returns its output.
func session(t *testing.T, name, layout string, script func(url string) string) string {
	d := newDevnet(t, layout)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := rpctest.Command(ctx, t, name, script(d.url), d.url, "ws"+strings.TrimPrefix(d.url, "http"), "0x"+keys[0], "0x"+keys[1])
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d.verify(t)
	return string(out)
}
