package main

import (
	"context"
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

// service is the service of the composition.
type service struct {
	Command     []string
	Environment map[string]string
	Healthcheck struct{ Test []string }
}

// composition returns the service that the composition runs.
func composition(t *testing.T) service {
	t.Helper()
	var composed struct{ Services map[string]service }
	require.NoError(t, yaml.Unmarshal(containers(t, "compose.yaml"), &composed))
	return composed.Services["varve"]
}

// composed runs the service of the composition, and returns its address and what asks it.
func composed(t *testing.T) (rest string, ask func(method, path string) string) {
	t.Helper()
	composed := composition(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"token": strings.Repeat("t", 40), "keys": strings.Repeat("ab", 32)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644)) // as openssl leaves them, and another user can read
	}
	here := strings.NewReplacer("/data", dir, "/run/secrets", dir, "0.0.0.0:8080", "127.0.0.1:0", "0.0.0.0:8081", "127.0.0.1:0")
	for name, value := range composed.Environment {
		t.Setenv(name, here.Replace(value))
	}
	command := composed.Command
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

// TestContainer: the container compares the engines. The composition runs a
// service that answers the health check, and takes and returns entities.
func TestContainer(t *testing.T) {
	rest, ask := composed(t)
	command := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindSubmatch(containers(t, "Containerfile"))
	require.NotNil(t, command)
	var args []string
	require.NoError(t, json.Unmarshal(command[1], &args))
	ended, cancel := context.WithCancel(t.Context())
	cancel() // it would measure for minutes
	require.Equal(t, cli.ExitInterrupted, cli.Run(ended, args, io.Discard, io.Discard), args)

	health := composition(t).Healthcheck.Test
	require.Equal(t, []string{"CMD", "varve"}, health[:2])
	require.Contains(t, must(t, health[2], strings.Replace(health[3], "127.0.0.1:8080", rest, 1)), "ready")
	_, errs, code := varve(t, "health", "http://127.0.0.1:1")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "refused")

	ask(http.MethodPut, "/v1/entities/0x"+strings.Repeat("01", 32)+"/payload?s.type=note")
	require.Contains(t, ask(http.MethodGet, "/v1/entities/0x"+strings.Repeat("01", 32)), "note")
}
