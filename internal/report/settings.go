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

// said is something that a manifest says.
type said struct {
	name string
	of   func(m *bench.Manifest) string
}

var machine = []said{
	{"processor", func(m *bench.Manifest) string { return fmt.Sprintf("%s, %d cores", m.Host.CPU, m.Host.Cores) }},
	{"memory", func(m *bench.Manifest) string { return fmt.Sprintf("%.0f GiB", float64(m.Host.MemoryBytes)/(1<<30)) }},
	{"system", func(m *bench.Manifest) string { return joinWords("; ", m.Host.OS+" "+m.Host.Arch, m.Host.Kernel) }},
	{"file system", func(m *bench.Manifest) string { return m.Host.Filesystem }},
}

var source = []said{
	{"Go", func(m *bench.Manifest) string { return m.Varve.Go }},
	{"revision", func(m *bench.Manifest) string {
		name, known := m.Varve.Name()
		if !known {
			name += " with changes"
		}
		return name
	}},
}

var setup = []said{
	{"version", func(m *bench.Manifest) string { return m.Engine.Version }},
	{"library", func(m *bench.Manifest) string { return m.Engine.Library }},
	{"durability, asked for", func(m *bench.Manifest) string { return string(m.Options.Durability) }},
	{"memory, asked for", func(m *bench.Manifest) string {
		if m.Options.MemoryBytes == 0 {
			return ""
		}
		return fmt.Sprintf("%.4g MiB", float64(m.Options.MemoryBytes)/(1<<20))
	}},
}

// settings are tables of what was measured, where, and with which settings. What
// differed between runs has several values.
func settings(list []bench.Manifest, engines []string) []Table {
	if len(list) == 0 {
		return []Table{{Notes: []string{"The result set has no manifests."}}}
	}
	of := newGrid(heads(""), heads("value"))
	of.Caption = "Machine and source."
	for _, s := range slices.Concat(machine, source) {
		of.put([]string{s.name}, 0, text(distinct(list, s.of)))
	}
	of.put([]string{"disk"}, 0, text(fsync(list)))
	back := newGrid(heads("setting"), engineHeads(engines, ""))
	back.Caption = "Engines, with their settings as read back. Several values: runs differed in it."
	asked := slices.Clone(setup)
	for i := range list {
		for _, s := range list[i].Settings {
			if !slices.ContainsFunc(asked, func(have said) bool { return have.name == s.Name }) {
				asked = append(asked, said{s.Name, readBack(s.Name)})
			}
		}
	}
	slices.SortFunc(asked[len(setup):], func(a, b said) int { return strings.Compare(a.name, b.name) })
	for i, e := range engines {
		own := slices.DeleteFunc(slices.Clone(list), func(m bench.Manifest) bool { return m.Engine.Name != e })
		for _, s := range asked {
			back.put([]string{s.name}, i, text(distinct(own, s.of)))
		}
	}
	return []Table{of.Table, back.Table}
}

// readBack returns the value of a setting.
func readBack(name string) func(m *bench.Manifest) string {
	return func(m *bench.Manifest) string {
		for _, s := range m.Settings {
			if s.Name == name {
				return s.Value
			}
		}
		return ""
	}
}

// fsync is how long the disks took: the middle of all probes.
func fsync(list []bench.Manifest) string {
	var times []time.Duration
	for i := range list {
		times = append(times, list[i].Host.Fsync.Median.Round(time.Microsecond))
	}
	if slices.Sort(times); len(times) == 0 {
		return ""
	}
	return fmt.Sprintf("fsync of 4 KiB in %s (%s to %s)", times[len(times)/2], times[0], times[len(times)-1])
}

// distinct joins the different values of manifests.
func distinct(list []bench.Manifest, of func(*bench.Manifest) string) string {
	var values []string
	for i := range list {
		if v := of(&list[i]); v != "" {
			values = appendNew(values, v)
		}
	}
	return strings.Join(values, "; ")
}
