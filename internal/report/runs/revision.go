package runs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	of, faults, why := make([]string, len(records)), make([]string, len(records)), make([]string, len(records))
	var known []int
	for i := range records {
		of[i], faults[i] = revision(&records[i], manifests)
		if why[i] = cmp.Or(faults[i], "another revision, "+Short(of[i])); loose {
			of[i], faults[i] = cmp.Or(of[i], faults[i]), ""
		}
		if faults[i] == "" && !End(&records[i]) {
			known = append(known, i)
		}
	}
	configurations := func(list []int) int { return len(By(list, func(i int) string { return records[i].Key() })) }
	newest := func(list []int) time.Time {
		return records[slices.MaxFunc(list, func(a, b int) int { return records[a].Started.Compare(records[b].Started) })].Started
	}
	if revisions := By(known, func(i int) string { return of[i] }); len(revisions) > 0 {
		name = of[slices.MaxFunc(revisions, func(a, b []int) int {
			return cmp.Or(cmp.Compare(configurations(a), configurations(b)), newest(a).Compare(newest(b)), cmp.Compare(of[a[0]], of[b[0]]))
		})[0]]
	}
	var left []string
	for i, r := range records {
		if End(&r) || faults[i] == "" && of[i] == name {
			kept = append(kept, r)
		} else {
			left = append(left, why[i])
		}
	}
	for _, same := range By(left, func(why string) string { return why }) {
		out = append(out, LeftOut{same[0], len(same)})
	}
	return kept, name, out
}

// EachOneRevision is OneRevision for experiments that are not compared with each other: one
// without a record of the revision called name was measured anew, whole, and is of its own,
// which others has.
func EachOneRevision(records []result.Record, manifests map[string]json.RawMessage, loose bool) (kept []result.Record, name string, others map[string]string, out []LeftOut) {
	together, name, _ := OneRevision(records, manifests, loose)
	group := map[string]string{} // of an experiment, when it is not its own
	for _, r := range together {
		if !End(&r) {
			group[r.Experiment] = "together"
		}
	}
	others, left := map[string]string{}, map[string]int{}
	for _, same := range By(records, func(r result.Record) string { return cmp.Or(group[r.Experiment], r.Experiment) }) {
		of, revision, excluded := OneRevision(same, manifests, loose)
		kept = append(kept, of...)
		if revision != name && revision != "" {
			others[same[0].Experiment] = revision
		}
		for _, l := range excluded {
			left[l.Why] += l.Records
		}
	}
	for _, why := range slices.Sorted(maps.Keys(left)) {
		out = append(out, LeftOut{why, left[why]})
	}
	return kept, name, others, out
}

// Others writes the revisions of experiments that have one of their own; "" for none.
func Others(others map[string]string) string {
	var list []string
	for _, id := range slices.Sorted(maps.Keys(others)) {
		list = append(list, id+" at "+Short(others[id]))
	}
	return strings.Join(list, ", ")
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
