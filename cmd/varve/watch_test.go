package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/node/chain/chaintest"
)

// notHere are metrics that neither of the processes of these tests has, and why.
var notHere = map[string]string{"varve_replica_lag_seconds": "only of a Postgres standby"}

// metricsOfAll returns what /metrics of a service, and of a node, which follows a chain, has.
func metricsOfAll(t *testing.T) (service, node string) {
	t.Helper()
	_, ask := composed(t)
	ask(http.MethodPut, "/v1/entities/0x"+strings.Repeat("01", 32)+"/payload?s.type=note")
	c := chaintest.New(99, 7)
	c.Grow(3)
	r := begin(t, "node", execution(t, c), url(t, "a.db"), "--listen=127.0.0.1:0", "--interval=10ms", "--layout=compact")
	address := r.says(t, `^Arkiv on (\S+),`)[0]
	require.Eventually(t, func() bool {
		node = get(t, address, "/metrics")
		return strings.Contains(node, "varve_follow_lag_blocks 0\n")
	}, time.Minute, 10*time.Millisecond)
	t.Cleanup(func() { require.Equal(t, cli.ExitOK, r.stop(), &r.errs) })
	return ask(http.MethodGet, "/metrics"), node
}

var metricName = regexp.MustCompile(`\b(?:varve|process|go)_\w+`)

// TestWatch looks at what watches a service and a node, with the metrics that these have.
func TestWatch(t *testing.T) {
	service, node := metricsOfAll(t)
	t.Run("dashboard", func(t *testing.T) { testDashboard(t, service, node) })
	t.Run("promtool", func(t *testing.T) { testPromtool(t, service, node) })
}

// testDashboard: the dashboard shows existing metrics, and all of ours, which
// docs/service.md lists; and the metrics of the alerts exist.
func testDashboard(t *testing.T, service, node string) {
	for name, text := range map[string]string{"service": service, "node": node} {
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		require.NoError(t, err)
		require.Empty(t, problems, name)
	}
	shown := map[string]bool{}
	for _, expr := range slices.Concat(dashboard(t), alerts(t)) {
		for _, name := range metricName.FindAllString(expr, -1) {
			shown[name] = true
			if notHere[name] == "" {
				require.Regexp(t, `\n`+name+`[ {]`, service+node, expr)
			}
		}
	}
	for name := range notHere {
		require.NotContains(t, service+node, "\n"+name)
	}
	documented, err := os.ReadFile(filepath.Join("..", "..", "docs", "service.md"))
	require.NoError(t, err)
	for _, family := range regexp.MustCompile(`(?m)^# TYPE (varve_\w+) `).FindAllStringSubmatch(service+node, -1) {
		name := family[1]
		require.Contains(t, string(documented), "`"+name+"`")
		require.True(t, shown[name] || shown[name+"_bucket"] || shown[name+"_count"], "no panel shows %s", name)
	}
}

// dashboard returns the expressions of the dashboard, whose panels are below
// rows, side by side.
func dashboard(t *testing.T) (exprs []string) {
	t.Helper()
	var board struct {
		Panels []struct {
			ID          int
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(containers(t, "grafana/dashboards/varve.json"), &board))
	require.Equal(t, "row", board.Panels[0].Type)
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range board.Panels {
		require.False(t, ids[p.ID], p.Title)
		ids[p.ID] = true
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		for at := range p.GridPos.W * p.GridPos.H {
			place := [2]int{p.GridPos.X + at%p.GridPos.W, p.GridPos.Y + at/p.GridPos.W}
			require.Less(t, place[0], 24, p.Title)
			require.Empty(t, taken[place], p.Title)
			taken[place] = p.Title
		}
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	return exprs
}

// alerts returns the expressions of the alerts.
func alerts(t *testing.T) (exprs []string) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal(containers(t, "alerts.yaml"), &file))
	for _, r := range file.Groups[0].Rules {
		exprs = append(exprs, r.Expr)
	}
	require.NotEmpty(t, exprs)
	return exprs
}

// testPromtool: Prometheus' own tool accepts the configuration with its alerts,
// the queries of the dashboard, and the text of /metrics; and the alerts are
// raised when they should be.
func testPromtool(t *testing.T, service, node string) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: Debian's package prometheus has it")
	}
	run := func(stdin string, args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), tool, args...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		at := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(at, []byte(text), 0o600))
		return at
	}
	write("alerts.yaml", string(containers(t, "alerts.yaml")))
	token := write("token", "t")
	run("", "check", "config", write("prometheus.yaml", strings.ReplaceAll(string(containers(t, "prometheus.yaml")), "/run/secrets/token", token)))
	run("", "test", "rules", filepath.Join("testdata", "alerts.yaml"))
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	for i, expr := range dashboard(t) {
		fmt.Fprintf(&rules, "      - {record: 'panel:%d', expr: %q}\n", i, expr)
	}
	run("", "check", "rules", write("dashboard.yaml", rules.String()))
	run(service, "check", "metrics")
	run(node, "check", "metrics")
}
