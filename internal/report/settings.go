package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/varvedb/varve/bench"
)

// manifests returns the manifests that records name, in their order.
func (in *Input) manifests() ([]bench.Manifest, error) {
	var list []bench.Manifest
	seen := map[string]bool{}
	for i := range in.Results.Records {
		key := in.Results.Records[i].Manifest
		text, ok := in.Results.Manifests[key]
		if !ok || seen[key] {
			continue
		}
		seen[key] = true
		var m bench.Manifest
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, fmt.Errorf("manifest %s: %w", key, err)
		}
		list = append(list, m)
	}
	return list, nil
}

// settingsTables say what was measured, where, and with which settings.
func settingsTables(list []bench.Manifest, engines []string) []Table {
	if len(list) == 0 {
		return []Table{{Notes: []string{"The result set has no manifests."}}}
	}
	return []Table{machineTable(list), engineTable(list, engines), readBackTable(list, engines)}
}

// machineTable is the machine, and the source that was measured. What differed
// between runs has several values.
func machineTable(list []bench.Manifest) Table {
	t := Table{Caption: "Machine and source.", Columns: heads("", "value")}
	for _, f := range []struct {
		name string
		of   func(m *bench.Manifest) string
	}{
		{"processor", func(m *bench.Manifest) string { return fmt.Sprintf("%s, %d cores", m.Host.CPU, m.Host.Cores) }},
		{"memory", func(m *bench.Manifest) string { return fmt.Sprintf("%.0f GiB", float64(m.Host.MemoryBytes)/(1<<30)) }},
		{"system", func(m *bench.Manifest) string { return join(m.Host.OS+" "+m.Host.Arch, m.Host.Kernel) }},
		{"file system", func(m *bench.Manifest) string { return m.Host.Filesystem }},
		{"Go", func(m *bench.Manifest) string { return m.Varve.Go }},
		{"revision", func(m *bench.Manifest) string {
			if m.Varve.Modified {
				return m.Varve.Commit + " with changes"
			}
			return m.Varve.Commit
		}},
	} {
		if v := distinct(list, f.of); v != "" {
			t.Rows = append(t.Rows, names(f.name, v))
		}
	}
	t.Rows = append(t.Rows, names("fsync of 4 KiB", fsyncRange(list)))
	return t
}

func fsyncRange(list []bench.Manifest) string {
	low, high := list[0].Host.Fsync.Median, list[0].Host.Fsync.Median
	for i := range list {
		low, high = min(low, list[i].Host.Fsync.Median), max(high, list[i].Host.Fsync.Median)
	}
	text := low.Round(time.Microsecond).String()
	if high != low {
		text += " to " + high.Round(time.Microsecond).String()
	}
	return "median " + text
}

// distinct joins the different values of manifests.
func distinct(list []bench.Manifest, of func(*bench.Manifest) string) string {
	var values []string
	for i := range list {
		if v := of(&list[i]); v != "" && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return strings.Join(values, "; ")
}

func ofEngine(list []bench.Manifest, engine string) []bench.Manifest {
	var own []bench.Manifest
	for _, m := range list {
		if m.Engine.Name == engine {
			own = append(own, m)
		}
	}
	return own
}

func engineTable(list []bench.Manifest, engines []string) Table {
	t := Table{Caption: "Engines.", Columns: heads("engine", "version", "library", "durability asked for", "memory")}
	for _, e := range engines {
		own := ofEngine(list, e)
		if len(own) == 0 {
			continue
		}
		t.Rows = append(t.Rows, names(e,
			distinct(own, func(m *bench.Manifest) string { return m.Engine.Version }),
			distinct(own, func(m *bench.Manifest) string { return m.Engine.Library }),
			distinct(own, func(m *bench.Manifest) string { return string(m.Options.Durability) }),
			distinct(own, func(m *bench.Manifest) string {
				if m.Options.MemoryBytes == 0 {
					return ""
				}
				return fmt.Sprintf("%.4g MiB", float64(m.Options.MemoryBytes)/(1<<20))
			})))
	}
	return t
}

// readBackTable has a row for each setting and a column for each engine.
func readBackTable(list []bench.Manifest, engines []string) Table {
	t := Table{Caption: "Settings as read back from the engines. Several values: runs differed in it.", Columns: heads("setting")}
	var settings []string
	for i := range list {
		for _, s := range list[i].Settings {
			if !slices.Contains(settings, s.Name) {
				settings = append(settings, s.Name)
			}
		}
	}
	slices.Sort(settings)
	for _, e := range engines {
		t.Columns = append(t.Columns, Column{Head: e, Engine: e})
	}
	for _, name := range settings {
		row := names(name)
		for _, e := range engines {
			row = append(row, text(distinct(ofEngine(list, e), func(m *bench.Manifest) string {
				for _, s := range m.Settings {
					if s.Name == name {
						return s.Value
					}
				}
				return ""
			})))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
