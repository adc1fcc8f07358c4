package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/store/driver"
)

// binaryFor returns a command that links an engine: this one, the other beside
// it or on the PATH, or one built now when the module's source is at hand.
func binaryFor(ctx context.Context, name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if _, linked := driver.Lookup(name); linked {
		return self, nil
	}
	command := engine.Find(name).Command
	if command == "" {
		return "", fmt.Errorf("no command of this module links engine %q", name)
	}
	beside := filepath.Join(filepath.Dir(self), command)
	if st, err := os.Stat(beside); err == nil && st.Mode().IsRegular() {
		return beside, nil
	}
	if path, err := exec.LookPath(command); err == nil {
		return path, nil
	}
	return buildSibling(ctx, command)
}

// buildSibling builds the other command into the user's cache. The go command
// does nothing when it is up to date.
func buildSibling(ctx context.Context, name string) (string, error) {
	hint := fmt.Errorf("put %s beside this binary or on the PATH: go install %s/cmd/%s@latest", name, engine.Module, name)
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", errors.Join(hint, err)
	}
	path := filepath.Join(cache, "varve", "bin", name)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, engine.Module+"/cmd/"+name)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w (building it here: %w: %s)", hint, err, strings.TrimSpace(stderr.String()))
	}
	return path, nil
}

// siblingEngines asks the other command for an engine's description.
func siblingEngines(e *env, name string) ([]engineInfo, error) {
	if os.Getenv(siblingGuard) != "" {
		return nil, nil // asked by the other: only our own
	}
	path, err := binaryFor(e.ctx, name)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(e.ctx, path, "engines", "--json")
	cmd.Env = append(os.Environ(), siblingGuard+"=1")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", path, err)
	}
	var list, found []engineInfo
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", path, err)
	}
	for _, info := range list {
		if info.Name == name {
			found = append(found, info)
		}
	}
	return found, nil
}

// siblingGuard is set in the environment of a command that another one asks,
// so that they do not ask each other for ever.
const siblingGuard = "VARVE_SIBLING"
