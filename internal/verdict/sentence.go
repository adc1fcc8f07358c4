package verdict

import (
	"fmt"
	"strings"
)

// sentence says what to choose and under which conditions, or what to measure.
// The tree's order decides between engines that both meet what is asked, and an
// engine before them that may as well keeps it open.
func (r *Report) sentence() string {
	if len(r.Assessments) == 0 {
		return "Not known: there is no record to decide from of " + strings.Join(judged, ", ") +
			" from a clean revision; measure next: " + Command("C1 D", "", "", 1)
	}
	failed, open := 0, ""
	for i := range r.Assessments {
		a := &r.Assessments[i]
		switch {
		case a.Meets == Unknown:
			open = a.Layout
		case a.Meets == Fail:
			failed++
		case a.Layout != open:
			return fmt.Sprintf("Choose %s with layout %s, by what was measured at revision %s: %s.", a.Engine, a.Layout, short(r.Revision), a.conditions())
		}
	}
	if failed == len(r.Assessments) {
		return fmt.Sprintf("Choose none of the %d engines with a layout that were measured at revision %s, since each misses a target: %s.",
			failed, short(r.Revision), noLeaf)
	}
	return fmt.Sprintf("Not known: of the %d engines with a layout that were measured at revision %s, %d miss a target and the others are open; measure next: %s",
		len(r.Assessments), short(r.Revision), failed, r.next())
}

// conditions are the figures that a choice rests on.
func (a *Assessment) conditions() string {
	var parts []string
	for _, c := range a.decisive() {
		parts = append(parts, fmt.Sprintf("%s %s at scale %s", c.Name, c.Measured(), c.Scale))
	}
	return strings.Join(parts, ", ")
}

// decisive are the criteria that a choice rests on.
func (a *Assessment) decisive() []Criterion {
	var tree, v1 []Criterion
	for _, c := range a.Criteria {
		switch c.Part {
		case PartTree:
			tree = append(tree, c)
		case PartV1:
			v1 = append(v1, c)
		}
	}
	return append(tree, required(v1)...)
}

// next is the command that would decide most about the engine and layout of which
// most is known to be good.
func (r *Report) next() string {
	command, good := "", -1
	for i := range r.Assessments {
		a := &r.Assessments[i]
		if a.Meets != Unknown {
			continue
		}
		passed, wanted, most := 0, map[string]int{}, ""
		for _, c := range a.decisive() {
			if c.Verdict == Pass {
				passed++
				continue
			}
			if wanted[c.Command]++; wanted[c.Command] > wanted[most] {
				most = c.Command
			}
		}
		if passed > good {
			command, good = most, passed
		}
	}
	return command
}
