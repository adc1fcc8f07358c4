package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/row"
	"github.com/varvedb/varve/internal/catalogue"
	"github.com/varvedb/varve/schemas"
)

// Experiment is a question with the way to answer it.
type Experiment struct {
	catalogue.Entry
	Layouts []string // those that it measures where none are asked for
	Names   []string // of its lines, as of benchmarks

	// Changes tells that it changes the data sets that it works on: it gets copies.
	Changes bool

	// Own tells that it asks nothing about attributes of the base profile, and so runs on a
	// source of the user's own too.
	Own bool

	Plan func(l *Lab) ([]Variant, error) // fails when the options do not fit
	core map[string]string               // what is of the core set: values of keys; nil is nothing
}

// registered are the plans of experiments that bring much with them, such as the service.
var registered = map[string]func(l *Lab) ([]Variant, error){}

// Register gives an experiment of the catalogue its plan. It is for init functions.
func Register(id string, plan func(l *Lab) ([]Variant, error)) { registered[id] = plan }

func elsewhere(id string) func(l *Lab) ([]Variant, error) {
	return func(l *Lab) ([]Variant, error) {
		if plan := registered[id]; plan != nil {
			return plan(l)
		}
		return nil, fmt.Errorf("%s is not linked into this program: it needs import _ %q", id, "github.com/varvedb/varve/internal/lab/network")
	}
}

// Core reports whether a variant is of the core set, which is small enough to be repeated and read: what go test
// -bench=. measures; of nil, whether any is.
func (e *Experiment) Core(v *Variant) bool {
	return e.core != nil && (v == nil || v.Keys.of(e.core))
}

// All returns the catalogue in order.
func All() []Experiment {
	type values = map[string]string
	type ops = map[string]Operation
	of, words := catalogue.Find, strings.Fields
	return []Experiment{
		{Entry: of("A1"), Names: words("Insert"),
			Plan: insertPlan{size: 1_000_000, memory: true, indexes: []int{0, 2, 6}, modes: []row.Mode{row.Single, row.Bulk}}.variants},
		{Entry: of("A2"), Names: words("Insert"),
			Plan: insertPlan{size: 10_000_000, perCommit: 10_000, indexes: []int{0, 2, 6}, modes: []row.Mode{row.Bulk}}.variants},
		{Entry: of("A3"), Names: words("Insert"),
			Plan: insertPlan{size: 10_000_000, perCommit: 500, indexes: []int{0, 2, 6}, modes: []row.Mode{row.Bulk, row.Single}}.variants},
		{Entry: of("A4"), Names: words("Insert"),
			Plan: insertPlan{size: 1_000_000, perCommit: 500, indexes: []int{6}, modes: row.Modes}.variants},
		{Entry: of("A5"), Names: words("Commit"), Layouts: words("arkiv"), Plan: committing((*Lab).seedCommits)},
		{Entry: of("A6"), Names: words("Commit"), Layouts: words("simple"), Plan: committing((*Lab).seedCommits)},
		{Entry: of("A7"), Names: words("Commit"), Layouts: words("arkiv"), Plan: committing((*Lab).memoryCommits)},
		{Entry: of("A8"), Names: words("SampledBlocks"), Own: true, Layouts: words("arkiv simple"), Changes: true, Plan: sampledBlocks},
		{Entry: of("A11"), Names: words("Commit"),
			Plan: committing((*Lab).typicalCommits, schemas.AblationLayouts()...)},
		{Entry: of("A12"), Names: words("ReadMix"), Own: true,
			Plan: reading([]readLoad{{clients: 1, reads: shortReads}}, schemas.AblationLayouts()...)},
		{Entry: of("A13"), Names: words("Commit"), Layouts: words("arkiv"), Plan: committing((*Lab).storageCommits)},
		{Entry: of("A14"), Names: words("Designed"), Layouts: words("arkiv simple"), Plan: designed},
		{Entry: of("A15"), Names: words("Payload"), Plan: payloads},
		{Entry: of("A16"), Names: words("Capped"), Layouts: answers, Changes: true, Plan: capped},
		{Entry: of("A17"), Names: words("PageSize"), Layouts: answers, Changes: true, Plan: pageSizes},
		{Entry: of("B1"), Names: words("Load"), Own: true, Layouts: answers, Plan: grown("Load", 0, 1, (*Lab).load)},
		{Entry: of("C1"), Names: words("ReadMix"), Own: true, Layouts: readLayouts,
			Plan: capacity, core: values{"layout": "arkiv compact", "clients": "1", "mix": "A B C W"}},
		{Entry: of("C2"), Names: words("ReadMix"), Own: true, Layouts: answers,
			Plan: reading([]readLoad{{clients: 10, rate: 100}, {clients: 10, rate: 1_000}, {clients: 10, rate: 5_000}, {clients: 10, rate: 10_000}})},
		{Entry: of("C3"), Names: words("ReadMix"), Own: true, Layouts: answers,
			Plan: reading([]readLoad{{temperature: cold}, {temperature: lukewarm}, {temperature: warm}})},
		{Entry: of("C4"), Names: words("ReadMix"), Own: true, Layouts: answers, Plan: againstMemory},
		{Entry: of("D1"), Names: words("Sustained"), Own: true, Layouts: writeLayouts, Changes: true, Plan: sustain},
		{Entry: of("D2"), Names: words("Checkpoint"), Own: true, Layouts: answers, Changes: true,
			Plan: checkpoints},
		{Entry: of("D3"), Names: words("Reorg"), Own: true, Layouts: writeLayouts, Changes: true, Plan: reorgs},
		{Entry: of("D4"), Names: words("Combined"), Own: true, Layouts: answers, Changes: true, Plan: besides},
		{Entry: of("D5"), Names: words("Degradation"), Own: true, Layouts: answers, Changes: true,
			Plan: grown("Degradation", 5, 0, (*Lab).degradation)},
		{Entry: of("E1"), Names: words("DataCentreRead"), Layouts: answers,
			Plan: centres("DataCentreRead", "clients", []int{1, 10}, (*Lab).centreReads)},
		{Entry: of("E2"), Names: words("DataCentreWrite"), Layouts: answers, Changes: true,
			Plan: centres("DataCentreWrite", "dc", []int{0, 30, 70, 100}, (*Lab).centreWrites)},
		{Entry: of("E3"), Names: words("DataCentreCombined"), Layouts: answers, Changes: true,
			Plan: centreVersion},
		{Entry: of("F1"), Names: words("EventAppend"), Changes: true, Plan: events("Append")},
		{Entry: of("F2"), Names: words("EventAppendConcurrent EventAppendRandom"), Changes: true,
			Plan: events("AppendConcurrent", "AppendRandom")},
		{Entry: of("F3"), Names: words("EventAppendConditional"), Changes: true,
			Plan: events("AppendConditional"), core: values{"layout": "tags", "profile": "small", "clients": "1 16"}},
		{Entry: of("F4"), Names: words("EventDecide"), Changes: true, Plan: events("Decide")},
		{Entry: of("F5"), Names: words("EventRead"), Plan: events("Read")},
		{Entry: of("F6"), Names: words("EventReadMemory"), Plan: events("ReadMemory")},
		{Entry: of("F7"), Names: words("EventStream"), Plan: events("Stream")},
		{Entry: of("F8"), Names: words("EventProject"), Plan: events("Project")},
		{Entry: of("G1"), Names: words("RebacIngest Rebac"), Layouts: words("rebac"), Plan: measurePermissions},
		{Entry: of("G2"), Names: words("SocialLoad Social"), Layouts: words("social"), Changes: true, Plan: measureSocial},
		{Entry: of("H1"), Names: words("Service ServiceEvents"), Layouts: words("compact"), Changes: true, Plan: elsewhere("H1")},
		{Entry: of("H3"), Names: words("Node"), Layouts: words("compact arkiv simple"), Changes: true, Plan: elsewhere("H3")},
		{Entry: of("I3"), Names: words("Frontier"), Own: true, Layouts: answers, Changes: true, Plan: frontier},
		{Entry: of("I5"), Names: words("V1"), Own: true, Layouts: answers, Changes: true, Plan: firstVersion},
		{Entry: of("J1"), Names: words("FirstSync"), Layouts: answers, Plan: elsewhere("J1")},
		{Entry: of("J2"), Names: words("Import"), Layouts: answers, Changes: true,
			Plan: Operated("Import", "source", 0, 1, ops{"sqlite-store": (*Lab).importArkiv})},
		{Entry: of("J3"), Names: words("Backup"), Own: true, Layouts: answers, Changes: true,
			Plan: Operated("Backup", "rate", 0, 2, ops{Ftoa(ArkivRowRate): (*Lab).backup})},
		{Entry: of("J4"), Names: words("Restart"), Own: true, Layouts: answers, Changes: true,
			Plan: Operated("Restart", "after", 1.5, 0, ops{"stop": (*Lab).restart, "kill": (*Lab).restart})},
		{Entry: of("J5"), Names: words("DailyGrowth"), Own: true, Layouts: answers, Changes: true,
			Plan: Operated("DailyGrowth", "rate", 1, 0, ops{Ftoa(ArkivRowRate): (*Lab).growth})},
		{Entry: of("Q1"), Names: words("FirstLook"), Own: true, Layouts: words("arkiv"), Plan: firstLook},
		{Entry: of("Q2"), Names: words("Commit Update Get"), Layouts: answers, Changes: true,
			Plan: operations, core: values{"layout": "arkiv compact"}},
		{Entry: of("Q3"), Names: words("Query"), Layouts: answers, Plan: queries},
	}
}

// Find returns the experiments with the given IDs or sections, in the order of the catalogue; all for none.
func Find(ids []string) ([]Experiment, error) {
	all := All()
	if len(ids) == 0 {
		return all, nil
	}
	named := func(e Experiment, id string) bool {
		return strings.EqualFold(e.ID, id) || strings.EqualFold(e.ID[:1], id)
	}
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(e Experiment) bool { return named(e, id) }) {
			return nil, fmt.Errorf("unknown experiment %q; varve run --list names them", strings.ToUpper(id))
		}
	}
	return slices.DeleteFunc(all, func(e Experiment) bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return named(e, id) })
	}), nil
}

// FindOwn returns those of Find that run on a source of the user's own. One that does not, and
// was asked for by its ID, is an error.
func FindOwn(ids []string) ([]Experiment, error) {
	found, err := Find(ids)
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		if !e.Own && slices.ContainsFunc(ids, func(id string) bool { return strings.EqualFold(id, e.ID) }) {
			return nil, fmt.Errorf("%s generates its own data; leave --source out", e.ID)
		}
	}
	own := slices.DeleteFunc(found, func(e Experiment) bool { return !e.Own })
	if len(own) == 0 {
		return nil, fmt.Errorf("all of %s generate their own data; leave --source out", strings.Join(ids, ", "))
	}
	return own, nil
}

// Variants are what is measured of an experiment on an engine; those on a source of the user's own are planned
// once it is prepared (Lab.Plan).
func (e Experiment) Variants(o Options, engine bench.Engine) ([]Variant, error) {
	if o.Source != "" {
		return nil, ErrSkip
	}
	return (&Lab{Options: o, Engine: engine, of: &e}).chosen(e)
}
