package runs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
)

// LeftOut counts records that are in no table, and says why.
type LeftOut struct {
	Why     string `json:"why"`
	Records int    `json:"records"`
}

// revision names the source that a record was measured from, or says why there is
// none to compare with that of others.
func revision(r *result.Record, manifests map[string]json.RawMessage) (name, fault string) {
	var m struct {
		Varve bench.Revision `json:"varve"`
	}
	if err := json.Unmarshal(manifests[r.Manifest], &m); err != nil {
		return "", "no manifest"
	}
	name, known := m.Varve.Name()
	switch {
	case known:
		return name, ""
	case name == "":
		return "", "no revision in the manifest"
	}
	return "", "dirty revision " + Short(name)
}

// Short is a revision as it is written.
func Short(revision string) string { return revision[:min(7, len(revision))] }

// OneRevision returns those records that may stand in one table, since they are of
// one revision that is known: that with the most configurations, of equals the
// newest. The ends of processes that had no manifest yet are kept: they say why
// others are missing. With loose, records whose revision has no name are of one
// revision too, for readers who have just measured them.
func OneRevision(records []result.Record, manifests map[string]json.RawMessage, loose bool) (kept []result.Record, name string, out []LeftOut) {
	names, faults := make([]string, len(records)), make([]string, len(records))
	keys, last := map[string]map[string]bool{}, map[string]time.Time{}
	for i, r := range records {
		of, fault := revision(&r, manifests)
		if loose {
			of, fault = cmp.Or(of, fault), ""
		}
		if names[i], faults[i] = of, fault; fault != "" || End(&r) {
			continue
		}
		if keys[of] == nil {
			keys[of] = map[string]bool{}
		}
		keys[of][r.Key()] = true
		if r.Started.After(last[of]) {
			last[of] = r.Started
		}
	}
	for of := range keys {
		if cmp.Or(cmp.Compare(len(keys[of]), len(keys[name])), last[of].Compare(last[name]), cmp.Compare(of, name)) > 0 {
			name = of
		}
	}
	for i, r := range records {
		if End(&r) || faults[i] == "" && names[i] == name {
			kept = append(kept, r)
			continue
		}
		why := cmp.Or(faults[i], "another revision, "+Short(names[i]))
		at := slices.IndexFunc(out, func(l LeftOut) bool { return l.Why == why })
		if at < 0 {
			at, out = len(out), append(out, LeftOut{Why: why})
		}
		out[at].Records++
	}
	return kept, name, out
}

// Excluded writes what was left out, on one line; "" for nothing.
func Excluded(out []LeftOut) string {
	if len(out) == 0 {
		return ""
	}
	total, text := 0, ""
	for _, l := range out {
		total += l.Records
		text += fmt.Sprintf(", %s (%d)", l.Why, l.Records)
	}
	return fmt.Sprintf("%d records left out: %s", total, text[2:])
}
