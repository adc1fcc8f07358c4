package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/report/runs"
)

// ordered are the groups in the order of rows.
func (x *experiment) ordered() (groups []*runs.Group) {
	for _, p := range x.pivots {
		groups = append(groups, p.groups...)
	}
	return groups
}

// strength of a correlation, as it is usually put.
func strength(r float64) string {
	switch r = math.Abs(r); {
	case r >= 0.7:
		return "strong"
	case r >= 0.3:
		return "moderate"
	}
	return "weak"
}

// judgeCorrelations compares whether what a block has in it goes with the time of its
// commit strongly, moderately (0.3 to 0.7) or weakly with what the documents found, in
// blocks as in production. There, entities, strings and numbers come together, so that no
// correlation can tell which of them it is.
func judgeCorrelations(x *experiment) string {
	list, _ := published()
	docs := peersOn(list, x.id)[0]
	same, other, engines := 0, []string{}, []string{}
	for _, g := range x.ordered() {
		for _, f := range docs.figures {
			for _, m := range f.Metrics {
				if v, ok := g.Median(runs.Measure{Unit: m.Unit}); ok && f.Beside(g.Config) {
					engines = runs.AppendNew(engines, g.Get("engine"))
					if strength(v) == strength(m.Value) {
						same++
					} else {
						other = append(other, g.Get("engine"))
					}
				}
			}
		}
	}
	total := same + len(other)
	sortEngines(other)
	switch {
	case total == 0:
		return ""
	case len(other) == 0:
		return fmt.Sprintf("**Agrees** with the documents: all %d correlations are as strong or as weak.", total)
	case same == 0:
		return fmt.Sprintf("**Contradicts** the documents: none of %d correlations is as strong or as weak.", total)
	}
	return fmt.Sprintf("**Depends on the engine**: %d of %d correlations are as strong or as weak as the documents'; others on %s.",
		same, total, strings.Join(slices.Compact(other), ", "))
}

// judgeDesign says which half of the documents' contradiction holds in a designed
// experiment: that payloads dominate (Experiments 5 to 7) or that they do not matter
// (8 to 10). Of several sizes the documents' own counts.
func judgeDesign(x *experiment) string {
	var dominates, nothing, both []string
	for _, g := range choose(x.ordered(), x.full) {
		fit := pooledFit(g)
		if fit == nil {
			continue
		}
		name := g.Get("layout") + " on " + g.Get("engine")
		attribute, payload := fit.Term(designTerms[1]), fit.Term(designTerms[2])
		switch {
		case payload.Low <= 0:
			nothing = append(nothing, name)
		case payload.Share > attribute.Share:
			dominates = append(dominates, name)
		default:
			both = append(both, name)
		}
	}
	total := len(dominates) + len(nothing) + len(both)
	say := func(text string, names []string) string {
		if len(names) == 0 {
			return ""
		}
		return text + " for " + strings.Join(names, ", ")
	}
	switch total {
	case 0:
		return ""
	case len(dominates):
		return "**Agrees with Experiments 5 to 7**, contradicts 8 to 10: payloads explain more than attributes, for all."
	case len(nothing):
		return "**Agrees with Experiments 8 to 10**, contradicts 5 to 7: what a payload adds may be nothing, for all."
	case len(both):
		return "**Contradicts both halves**: payloads add to a commit and explain less than attributes, for all."
	}
	return "**Depends on engine and layout**: " + joinWords("; ", say("payloads explain more than attributes (Experiments 5 to 7)", dominates),
		say("what a payload adds may be nothing (8 to 10)", nothing), say("payloads add to a commit and explain less than attributes", both)) + "."
}

// judgeService says up to which rate each engine keeps AuthZed's service levels, over all
// lower ones that were asked; of several sizes with the documents' own.
func judgeService(x *experiment) string {
	least := map[string]float64{"share-success": 0.999}
	most := map[string]float64{"check-p95-ms": 25, "write-p95-ms": 100}
	kept := func(g *runs.Group) bool {
		for _, unit := range []string{"share-success", "check-p95-ms", "write-p95-ms"} {
			v, ok := g.Median(runs.Measure{Unit: unit})
			if ok && (v < least[unit] || most[unit] > 0 && v >= most[unit]) {
				return false
			}
		}
		qps, ok := g.Median(runs.Measure{Unit: "qps"})
		return ok && !g.Failed() && qps >= 0.95*number(g.Get("qps"))
	}
	var parts []string
	sized := choose(x.groups, x.full)
	for _, e := range enginesOf(x.groups) {
		groups := runs.Where(sized, func(g *runs.Group) bool { return g.Get("engine") == e && g.Get("qps") != "" })
		slices.SortStableFunc(groups, func(a, b *runs.Group) int { return natural(a.Get("qps"), b.Get("qps")) })
		if len(groups) == 0 {
			continue
		}
		text := e + " at none"
		for _, g := range groups {
			if !kept(g) {
				break
			}
			text = e + " up to " + readable(g.Get("qps"))
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	return "AuthZed's service levels (checks below 25 ms and writes below 100 ms at p95, 99.9 % answered, 95 % of the rate) are kept by " +
		strings.Join(parts, ", ") + " checks a second."
}
