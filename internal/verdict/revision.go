package verdict

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/varvedb/varve/bench/result"
)

// LeftOut counts records that are not judged, and says why.
type LeftOut struct {
	Why     string `json:"why"`
	Records int    `json:"records"`
}

// revisionOf returns the source that a record was measured from, or why there is
// none to compare with that of others.
func revisionOf(r *result.Record, manifests map[string]json.RawMessage) (revision, fault string) {
	var m struct {
		Varve struct {
			Source   string `json:"source"` // a hash of what was measured, whatever the commit is
			Commit   string `json:"commit"`
			Modified bool   `json:"modified"`
		} `json:"varve"`
	}
	if err := json.Unmarshal(manifests[r.Manifest], &m); err != nil {
		return "", "no manifest"
	}
	switch {
	case m.Varve.Source != "":
		return m.Varve.Source, ""
	case m.Varve.Commit == "":
		return "", "no revision in the manifest"
	case m.Varve.Modified:
		return "", "dirty revision " + short(m.Varve.Commit)
	}
	return m.Varve.Commit, ""
}

func short(revision string) string { return revision[:min(7, len(revision))] }

// oneRevision returns the records that may be judged together: of those that
// criteria look at, the ones of the clean revision that carries the most
// experiments, of several the newest.
func oneRevision(in *result.Results) (kept []result.Record, revision string, out []LeftOut) {
	experiments, last := map[string]int{"": 0}, map[string]time.Time{}
	seen := map[[2]string]bool{}
	for i := range in.Records {
		r := &in.Records[i]
		name, fault := revisionOf(r, in.Manifests)
		if fault != "" || !slices.Contains(judged, r.Experiment) {
			continue
		}
		if at := [2]string{name, r.Experiment}; !seen[at] {
			seen[at] = true
			experiments[name]++
		}
		if r.Started.After(last[name]) {
			last[name] = r.Started
		}
	}
	revision = slices.MaxFunc(slices.Sorted(maps.Keys(experiments)), func(a, b string) int {
		return cmp.Or(cmp.Compare(experiments[a], experiments[b]), last[a].Compare(last[b]))
	})
	for i := range in.Records {
		r := &in.Records[i]
		name, why := revisionOf(r, in.Manifests)
		switch {
		case !slices.Contains(judged, r.Experiment):
			continue
		case isEnd(r), why == "" && name == revision:
			kept = append(kept, *r)
			continue
		case why == "":
			why = "another revision, " + short(name)
		}
		at := slices.IndexFunc(out, func(l LeftOut) bool { return l.Why == why })
		if at < 0 {
			at, out = len(out), append(out, LeftOut{Why: why})
		}
		out[at].Records++
	}
	return kept, revision, out
}

// isEnd tells what a process left that ended before it had measured all. It has
// no figures and never a manifest, and says why others are missing.
func isEnd(r *result.Record) bool { return len(r.Config) <= 1 && r.Error != "" }

// Excluded writes what was left out, on one line; "" for nothing.
func (r *Report) Excluded() string {
	total, text := 0, ""
	for _, l := range r.LeftOut {
		total += l.Records
		text += fmt.Sprintf(", %s (%d)", l.Why, l.Records)
	}
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("%d records left out: %s", total, text[2:])
}
