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

// host has a row for each that manifests say of where was measured.
func host(list []bench.Manifest) *Table {
	g := newGrid(heads(""), heads("value"))
	for i := range list {
		h := &list[i].Host
		g.say(0, [][2]string{
			{"processor", fmt.Sprintf("%s, %d cores", h.CPU, h.Cores)},
			{"memory", fmt.Sprintf("%.0f GiB", float64(h.MemoryBytes)/(1<<30))},
			{"system", h.OS + " " + h.Arch}, {"system", h.Kernel},
			{"file system", h.Filesystem},
		})
	}
	g.say(0, [][2]string{{"disk", fsync(list)}})
	return g
}

// setup is how an engine was, first what was asked for and then what it said, by name.
func setup(m *bench.Manifest) [][2]string {
	memory := ""
	if m.Options.MemoryBytes > 0 {
		memory = fmt.Sprintf("%.4g MiB", float64(m.Options.MemoryBytes)/(1<<20))
	}
	said := [][2]string{
		{"version", m.Engine.Version}, {"library", m.Engine.Library},
		{"durability, asked for", string(m.Options.Durability)}, {"memory, asked for", memory},
	}
	for _, s := range m.Settings {
		said = append(said, [2]string{s.Name, s.Value})
	}
	return said
}

// settings are tables of what was measured, where, and with which settings. What
// differed between runs has several values.
func settings(in *Input) ([]Table, error) {
	list, err := in.manifests()
	if err != nil || len(list) == 0 {
		return []Table{{Notes: []string{"The result set has no manifests."}}}, err
	}
	engines := in.engines()
	back := newGrid(heads("setting"), engineHeads(engines, ""))
	back.Caption = "Engines, with their settings as read back. Several values: runs differed in it."
	for i := range list {
		if e := slices.Index(engines, list[i].Engine.Name); e >= 0 {
			back.say(e, setup(&list[i]))
		}
	}
	asked := len(setup(&bench.Manifest{}))
	slices.SortFunc(back.Rows[min(asked, len(back.Rows)):], func(a, b []Cell) int { return strings.Compare(a[0].Text, b[0].Text) })
	return []Table{*machine(in, list), *back}, nil
}

// say adds values to what a column says of their names.
func (t *Table) say(column int, said [][2]string) {
	for _, s := range said {
		c := t.at([]string{s[0]}, column)
		if !strings.Contains("; "+c.Text+";", "; "+s[1]+";") {
			c.Text = joinWords("; ", c.Text, s[1])
		}
	}
}

// fsync is how long the disks took: the middle of all probes.
func fsync(list []bench.Manifest) string {
	var times []time.Duration
	for i := range list {
		if t := list[i].Host.Fsync.Median.Round(time.Microsecond); t > 0 { // memory takes none
			times = append(times, t)
		}
	}
	if slices.Sort(times); len(times) == 0 {
		return ""
	}
	return fmt.Sprintf("fsync of 4 KiB in %s (%s to %s)", times[len(times)/2], times[0], times[len(times)-1])
}
