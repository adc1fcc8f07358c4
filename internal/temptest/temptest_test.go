package temptest

import (
	"os"
	"path/filepath"
	"testing"
)

// TestInMemory: tests have an empty temporary directory, which is removed, and
// they fail if they leave a file there.
func TestInMemory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // InMemory replaces it, and this test puts it back
	for _, c := range []struct{ code, want int }{{0, 0}, {3, 3}} {
		var dir string
		got := InMemory(func() int {
			dir = os.TempDir()
			return c.code
		}).Run()
		if got != c.want {
			t.Errorf("exit code %d, want %d", got, c.want)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", dir, err)
		}
	}
	var left string
	got := InMemory(func() int {
		left = filepath.Join(os.TempDir(), "left")
		if err := os.WriteFile(left, nil, 0o600); err != nil {
			t.Error(err)
		}
		return 0
	}).Run()
	if got != 1 {
		t.Errorf("exit code %d with a file that was left, want 1", got)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", left, err)
	}
}
