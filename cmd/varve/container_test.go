package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/varvedb/varve/internal/cli"
)

// containers is a file of the directory container.
func containers(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "container", name))
	require.NoError(t, err)
	return text
}

// inContainer returns the list after a word of a Containerfile.
func inContainer(t *testing.T, word string) (list []string) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^(?:` + word + `)\b.*?(\[.*\])$`).FindSubmatch(containers(t, "Containerfile"))
	require.NotNil(t, line, word)
	require.NoError(t, json.Unmarshal(line[1], &list))
	return list
}

// composed runs the service of the composition, and returns its address and what asks it.
func composed(t *testing.T) (rest string, ask func(method, path string) string) {
	t.Helper()
	var composed struct {
		Services map[string]struct {
			Command     []string
			Environment map[string]string
		}
	}
	require.NoError(t, yaml.Unmarshal(containers(t, "compose.yaml"), &composed))
	dir := t.TempDir()
	for name, text := range map[string]string{"token": strings.Repeat("t", 40), "keys": strings.Repeat("ab", 32)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644)) // as openssl leaves them, and another user can read
	}
	here := strings.NewReplacer("/data", dir, "/run/secrets", dir, "0.0.0.0:8080", "127.0.0.1:0", "0.0.0.0:8081", "127.0.0.1:0")
	for name, value := range composed.Services["varve"].Environment {
		t.Setenv(name, here.Replace(value))
	}
	command := composed.Services["varve"].Command
	require.Equal(t, inContainer(t, "CMD"), command[:len(inContainer(t, "CMD"))], "the composition adds secrets only")
	for i := range command {
		command[i] = here.Replace(command[i])
	}
	rest, _, stop := serve(t, command[1:]...)
	t.Cleanup(func() { require.Equal(t, cli.ExitOK, stop()) })
	return rest, func(method, path string) string {
		req, err := http.NewRequest(method, "http://"+rest+path, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+strings.Repeat("t", 40))
		req.Header.Set("Content-Type", "text/plain")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Less(t, resp.StatusCode, 300, string(text))
		return string(text)
	}
}

// TestContainer: the container and the composition run a service that answers
// the health check, and takes and returns entities.
func TestContainer(t *testing.T) {
	rest, ask := composed(t)
	health := inContainer(t, "HEALTHCHECK")
	require.Equal(t, "varve", health[0])
	require.Contains(t, must(t, health[1], strings.Replace(health[2], "127.0.0.1:8080", rest, 1)), "ready")
	_, errs, code := varve(t, "health", "http://127.0.0.1:1")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "refused")

	ask(http.MethodPut, "/v1/entities/0x"+strings.Repeat("01", 32)+"/payload?s.type=note")
	require.Contains(t, ask(http.MethodGet, "/v1/entities/0x"+strings.Repeat("01", 32)), "note")
}
