package social

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestParseScript(t *testing.T) {
	got, err := ParseScript([]byte(`
name: all
phases:
  - {rate: 10, duration: 1s}
  - rate: 2e3
    duration: 500ms
warmup: 0s
connections: 3
arrivals: fixed
active: 1%
staleness: 5s
give-up: 2s
steps:
  - check: content
    weight: 1.5
  - {lookup: content, weight: 1}
  - {lookup: subjects, weight: 1}
  - {write: blocked, weight: 0.25}
`))
	require.NoError(t, err)
	want := &Script{
		Name: "all", Phases: []Phase{{10, time.Second}, {2000, 500 * time.Millisecond}},
		Steps: []Step{
			{Weight: 1.5, Check: "content"}, {Weight: 1, Lookup: "content", Limit: 100},
			{Weight: 1, Lookup: "subjects"}, {Weight: 0.25, Write: ToggleBlocked},
		},
		Connections: 3, Arrivals: "fixed", Active: 0.01, Staleness: 5 * time.Second, GiveUp: 2 * time.Second,
	}
	require.Empty(t, cmp.Diff(want, got))
	require.Equal(t, 1500*time.Millisecond, got.Length())
}

func TestParseScriptDefaults(t *testing.T) {
	got, err := ParseScript([]byte("name: x\nrate: 1\nduration: 1s\nsteps: [{check: user, weight: 1}]\n"))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(&Script{
		Name: "x", Phases: []Phase{{1, time.Second}}, Steps: []Step{{Weight: 1, Check: "user"}},
		WarmUp: time.Second, Connections: 8, Arrivals: "poisson", Active: 0.1, GiveUp: time.Second,
	}, got))
}

// What is wrong is named with its line, or with its key and the number of its step.
func TestParseScriptErrors(t *testing.T) {
	const head, steps = "name: x\nrate: 1\nduration: 1s\n", "steps:\n  - check: user\n    weight: 1\n"
	for name, tt := range map[string]struct{ text, want string }{
		"empty":            {"", "EOF"},
		"comment":          {"# nothing\n", "EOF"},
		"no YAML":          {"name: [", "line 1"},
		"tab":              {"name:\tx\n\tsteps: 1", "yaml"},
		"a list":           {"- name: x\n", "line 1"},
		"two documents":    {head + steps + "---\nname: y\n", "second document"},
		"unknown key":      {head + "speed: 1\n" + steps, "line 4: field speed not found"},
		"key twice":        {head + "name: y\n" + steps, `line 4: mapping key "name" already defined at line 1`},
		"no name":          {"rate: 1\nduration: 1s\n" + steps, `name: ""`},
		"bad name":         {"name: A b\nrate: 1\nduration: 1s\n" + steps, `name: "A b": want lower-case`},
		"no steps":         {head, "steps: want a list"},
		"empty steps":      {head + "steps: []\n", "steps: want a list"},
		"steps no list":    {head + "steps: 7\n", "line 4"},
		"no phase":         {"name: x\n" + steps, "give rate and duration, or phases"},
		"no rate":          {"name: x\nduration: 1s\n" + steps, "phase 1: rate 0"},
		"rate and phases":  {head + "phases: [{rate: 1, duration: 1s}]\n" + steps, "leave out the script's"},
		"phase, no rate":   {"name: x\nphases:\n  - {rate: 1, duration: 1s}\n  - duration: 1s\n" + steps, "phase 2: rate 0"},
		"phase, unknown":   {"name: x\nphases:\n  - rat: 1\n" + steps, "line 3: field rat not found"},
		"rate NaN":         {"name: x\nrate: .nan\nduration: 1s\n" + steps, "phase 1: rate NaN"},
		"rate too high":    {"name: x\nrate: 1e9\nduration: 1s\n" + steps, "at most 1e+07"},
		"rate, a list":     {"name: x\nrate: [1]\nduration: 1s\n" + steps, "line 2"},
		"duration":         {"name: x\nrate: 1\nduration: 10\n" + steps, "line 3: cannot unmarshal !!int `10` into time.Duration"},
		"duration below 0": {"name: x\nrate: 1\nduration: -1s\n" + steps, "phase 1: rate 1 for -1s"},
		"active":           {head + "active: 101%\n" + steps, "active: 1.01"},
		"active, a word":   {head + "active: some\n" + steps, `parsing "some"`},
		"arrivals":         {head + "arrivals: uniform\n" + steps, `arrivals: "uniform": want poisson or fixed`},
		"connections":      {head + "connections: many\n" + steps, "line 4"},
		"no connections":   {head + "connections: 0\n" + steps, "connections: 0"},
		"give-up":          {head + "give-up: 0s\n" + steps, "give-up"},
		"no weight":        {head + "steps:\n  - check: user\n", "step 1: weight: 0"},
		"two things":       {head + "steps:\n  - {check: user, write: blocked, weight: 1}\n", `step 1: "check-userwrite-blocked": want one of`},
		"nothing":          {head + "steps:\n  - {weight: 1}\n", `step 1: "": want one of check-user`},
		"check what":       {head + "steps:\n  - {check: page, weight: 1}\n", `step 1: "check-page": want one of check-user`},
		"write what":       {head + "steps:\n  - {write: page, weight: 1}\n", "write-follower, write-blocked, write-visibility"},
		"limit of a check": {head + "steps:\n  - {check: user, weight: 1, limit: 5}\n", "step 1: limit: 5: want 1 to 100000, of a look-up of content"},
		"limit":            {head + "steps:\n  - {lookup: content, weight: 1, limit: -5}\n", "step 1: limit: -5"},
		"same step":        {head + steps + "  - {check: user, weight: 1}\n", "step 2: check-user is there already"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseScript([]byte(tt.text))
			require.ErrorIs(t, err, ErrScript)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// Every script that comes with the package is good and called as its file; the
// default one has AuthZed's mix.
func TestScripts(t *testing.T) {
	require.Contains(t, Scripts(), DefaultScript)
	for _, name := range Scripts() {
		s, err := LoadScript(name)
		require.NoError(t, err, name)
		require.Equal(t, name, s.Name)
	}
	_, err := LoadScript("nonsense")
	require.ErrorContains(t, err, "known are authzed, lookups, ramp")

	s, err := LoadScript(DefaultScript)
	require.NoError(t, err)
	weights, total := map[string]float64{}, 0.0
	for _, step := range s.Steps {
		kind := step.Check
		if step.Write != "" {
			kind = "write"
		}
		weights[kind] += step.Weight
		total += step.Weight
	}
	require.InDelta(t, 0.01, weights["write"]/total, 1e-9)
	checks := total - weights["write"]
	require.InDelta(t, 0.6, weights["content"]/checks, 1e-9)
	require.InDelta(t, 0.3, weights["user"]/checks, 1e-9)
	require.InDelta(t, 0.1, weights["interaction"]/checks, 1e-9)
}

// A script is read or refused as such, and one that is read can be run.
func FuzzParseScript(f *testing.F) {
	for _, name := range Scripts() {
		text, err := scriptFiles.ReadFile("scripts/" + name + ".yaml")
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte("name: &a x\nrate: *a\n"))
	f.Add([]byte("{}\n---\n{}"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseScript(text)
		if err != nil {
			require.ErrorIs(t, err, ErrScript)
			require.Nil(t, s)
			return
		}
		require.NotEmpty(t, s.Phases)
		require.NotEmpty(t, s.Steps)
		require.Regexp(t, scriptName, s.Name)
		require.Positive(t, s.Connections)
		require.Positive(t, s.GiveUp)
		require.True(t, s.Active > 0 && s.Active <= 1)
		for _, p := range s.Phases {
			require.True(t, p.Rate > 0 && p.Rate <= 1e7 && p.Duration > 0)
		}
		for _, step := range s.Steps {
			require.Positive(t, step.Weight)
			require.True(t, step.Lookup != lookupContent || step.Limit > 0)
		}
	})
}
