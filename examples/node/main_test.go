package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// TestRun runs the program twice on real blocks: the second time it goes on
// from where the first one left the store.
func TestRun(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "node.db")
	for _, want := range []string{"applied 100 blocks, head 1263", "head 1263"} {
		var out bytes.Buffer
		if err := run(context.Background(), &out, "../../testdata/arkiv-small/blocks.tar", url); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, want) || !strings.Contains(got, "rewound to block") {
			t.Errorf("output lacks %q:\n%s", want, got)
		}
	}
}
