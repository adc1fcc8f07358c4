package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/row"
	"github.com/varvedb/varve/schemas"
)

// Experiment is a question with the way to answer it.
type Experiment struct {
	ID       string // section and number, such as "A5"
	Title    string
	Question string
	Earlier  string   // what the user's documents report, with its machine's figures
	Layouts  []string // those that it measures where none are asked for
	Names    []string // of its lines, as of benchmarks

	// Changes tells that it changes the data sets that it works on: it gets copies.
	Changes bool

	// Own tells that it asks nothing about attributes of the base profile, and so runs on a
	// source of the user's own too.
	Own bool

	// Ordered tells that its variants are steps of one course, and keep their order.
	Ordered bool

	plan   func(l *Lab) ([]Variant, error) // fails when the options do not fit
	phases int                             // timed phases of a layout; 0 means manyPhases
	core   map[string]string               // what is of the core set: values of keys; nil is nothing
}

// HasCore tells whether anything of the experiment is of the core set.
func (e *Experiment) HasCore() bool { return e.core != nil }

// Core tells whether a variant is of the core set, which is small enough to be repeated and read:
// what go test -bench=. measures.
func (e *Experiment) Core(v *Variant) bool {
	for name, value := range e.core {
		if !slices.Contains(strings.Fields(value), v.Keys.Get(name)) {
			return false
		}
	}
	return e.core != nil
}

// All returns the catalogue in order.
func All() []Experiment {
	return []Experiment{
		{ID: "A1", Title: "Index cost in memory", Names: []string{"Insert"}, phases: 12,
			Question: "What do no, 2 and 6 indexes cost when the disk costs nothing?",
			Earlier:  "1M rows, Python: 2.96x (single) and 3.59x (batch) with 2 indexes, 6.23x and 7.88x with 6; bi-temporal 2.1 times simple",
			plan:     insertPlan{size: 1_000_000, memory: true, indexes: []int{0, 2, 6}, modes: []row.Mode{row.Single, row.Bulk}}.variants},
		{ID: "A2", Title: "Index cost on file, 10,000 rows a commit", Names: []string{"Insert"}, phases: 6,
			Question: "What do the indexes cost with large commits?",
			Earlier:  "10M rows: 11.8x over none with 2 indexes, 58.6x with 6",
			plan:     insertPlan{size: 10_000_000, perCommit: 10_000, indexes: []int{0, 2, 6}, modes: []row.Mode{row.Bulk}}.variants},
		{ID: "A3", Title: "Index cost on file, 500 rows a commit", Names: []string{"Insert"}, phases: 12,
			Question: "What do the indexes cost with commits of a block's size, in bulk and row by row?",
			Earlier:  "10M rows: 41x over none with 2 indexes, 109x with 6; row by row (3b) 36x and 93x, so no difference between the two",
			plan:     insertPlan{size: 10_000_000, perCommit: 500, indexes: []int{0, 2, 6}, modes: []row.Mode{row.Bulk, row.Single}}.variants},
		{ID: "A4", Title: "Insert mode", Names: []string{"Insert"}, phases: 8, plan: insertPlan{size: 1_000_000, perCommit: 500, indexes: []int{6}, modes: row.Modes}.variants,
			Question: "Does it matter how 500 rows reach the engine, with the commits the same?",
			Earlier:  "1M rows, 6 indexes: at most 3 % between executemany and single inserts, in Python"},
		{ID: "A5", Title: "Full schema, realistic payloads", Names: []string{"Commit"}, Layouts: []string{"arkiv"}, plan: committing((*Lab).seedCommits),
			Question: "How many entities a second does the 13-index schema take, and what do payloads cost?",
			Earlier:  "714 typical, 85 large, 3,141 minimal entities/s; with payloads of 256 B 3,241, 1,842 and 6,849"},
		{ID: "A6", Title: "Without history", Names: []string{"Commit"}, Layouts: []string{"simple"}, plan: committing((*Lab).seedCommits),
			Question: "What is saved by six indexes and no history?",
			Earlier:  "735 typical, 82 large, 3,137 minimal entities/s: 1.03, 0.96 and 1.00 times the full schema"},
		{ID: "A7", Title: "Memory", Names: []string{"Commit"}, Layouts: []string{"arkiv"}, plan: committing((*Lab).memoryCommits),
			Question: "How much memory for caching pays with large payloads?",
			Earlier:  "50,000 entities of 10+7 attributes and 50 KB, cache 3 to 7.5 GB: 69 to 75 entities/s, no effect"},
		{ID: "A8", Title: "Blocks as in production", Names: []string{"SampledBlocks"}, Own: true, Layouts: []string{"arkiv", "simple"}, Changes: true, plan: sampledBlocks,
			Question: "What is the time of a commit correlated with, over blocks whose number of entities is heavy-tailed, and over blocks of which entities, strings, numbers and payload vary independently?",
			Earlier:  "50,000 production blocks: attributes 0.96, entities 0.90, payload -0.06; strings 0.97, numbers 0.94; median 4 ms, max 1,523 ms; simple: strings 0.96, numbers 0.91, median 3 ms"},
		{ID: "A11", Title: "Index by index, writes", Names: []string{"Commit"}, plan: committing((*Lab).typicalCommits, schemas.AblationLayouts()...),
			Question: "What does each of the thirteen indexes add to a commit, in the seed's order?",
			Earlier:  "asked, not measured; whole sets: 2.1x in memory, 5x on file, nothing with payloads"},
		{ID: "A12", Title: "Index by index, reads", Names: []string{"ReadMix"}, Own: true, phases: len(mix.Names) * len(schemas.AblationLayouts()),
			Question: "Which of the thirteen indexes do the read mixes need?",
			Earlier:  "asked, not measured",
			plan:     reading([]readLoad{{clients: 1, reads: shortReads}}, schemas.AblationLayouts()...)},
		{ID: "A13", Title: "Storage", Names: []string{"Commit"}, Layouts: []string{"arkiv"}, plan: committing((*Lab).storageCommits),
			Question: "What does the disk, and what does the promise of durability cost?",
			Earlier:  "asked, not measured"},
		{ID: "A14", Title: "Attributes, payload or entities", Names: []string{"Designed"}, Layouts: []string{"arkiv", "simple"}, plan: designed,
			Question: "How much does each attribute, each kilobyte of payload and each entity add to a commit?",
			Earlier:  "contradictory: payload dominates (22x, Experiment 5), payload does not matter (-0.06, Experiment 8)"},
		{ID: "A15", Title: "Where payloads are kept", Names: []string{"Payload"}, phases: 64, plan: payloads,
			Question: "What does it change to keep payloads in the row, in their own table, compressed, or in a file beside the database?",
			Earlier:  "recommended, not measured: external storage, compression"},
		{ID: "A16", Title: "Cap on writes a block", Names: []string{"Capped"}, Layouts: answers, Changes: true, plan: capped,
			Question: "How long are commits of the same rows in blocks of 100 to 10,000?",
			Earlier:  "recommended, not measured: cap the writes of a block"},
		{ID: "A17", Title: "Page size", Names: []string{"PageSize"}, Layouts: []string{"arkiv", "compact", "tags"}, Changes: true, phases: 24, plan: pageSizes,
			Question: "What do pages of 4 to 32 KiB change, of data that fit into memory and of ten times as much?",
			Earlier:  "recommended, not measured"},
		{ID: "B1", Title: "Loading the base profile", Names: []string{"Load"}, Own: true, Layouts: answers, plan: grown("Load", (*Lab).load),
			Question: "How long does it take to load the base profile, its indexes made afterwards, and how large is it then?",
			Earlier:  "Planned: 13 GB at 1x, 27, 67 and 133 GB at 2x, 5x and 10x"},
		{ID: "C1", Title: "Read mixes, capacity", Names: []string{"ReadMix"}, Own: true, Layouts: readLayouts, phases: 8,
			Question: "How many reads a second does each mix reach with 1 and with 10 clients, and how long does each kind of read take?",
			Earlier:  "planned: 1,000 queries of warm-up, 10,000 measured, 1 and 10 connections; not measured",
			plan:     capacity,
			core:     map[string]string{"layout": "arkiv compact", "clients": "1", "mix": "A B C W"}},
		{ID: "C2", Title: "Read mixes at a rate", Names: []string{"ReadMix"}, Own: true, Layouts: answers, phases: 16,
			Question: "What are the latencies at 100 to 10,000 reads a second, from the moment a read was due?",
			Earlier:  "planned: target rates 100 to 10,000; not measured",
			plan:     reading([]readLoad{{clients: 10, rate: 100}, {clients: 10, rate: 1_000}, {clients: 10, rate: 5_000}, {clients: 10, rate: 10_000}})},
		{ID: "C3", Title: "Cold and warm", Names: []string{"ReadMix"}, Own: true, Layouts: answers, phases: 16,
			Question: "What do reads cost when nothing is cached, when only the page cache is warm, and when all is?",
			Earlier:  "asked for: index in memory, over 95 % resident",
			plan:     reading([]readLoad{{temperature: cold}, {temperature: lukewarm}, {temperature: warm}})},
		{ID: "C4", Title: "Memory against size", Names: []string{"ReadMix"}, Own: true, Layouts: answers, phases: 20, plan: againstMemory,
			Question: "How many reads a second does a store of a size reach with how much memory?",
			Earlier:  "planned: 1x with 1, 2 and 4 GiB, 5x with 1, 4 and 16 GiB; not measured"},
		{ID: "D1", Title: "Sustained writes", Names: []string{"Sustained"}, Own: true, Layouts: writeLayouts, Changes: true, phases: 4, plan: sustain,
			Question: "What are the latencies of commits at 6,000 rows a second, and how many rows a second can be kept up?",
			Earlier:  "targets: p50 < 500, p99 < 1,500, max < 2,000 ms, over 5,000 rows/s; to stay on SQLite: p99 < 500 ms at 5x"},
		{ID: "D2", Title: "Checkpoint stalls", Names: []string{"Checkpoint"}, Own: true, Layouts: answers, Changes: true, phases: 10, plan: checkpoints,
			core:     map[string]string{"layout": "arkiv", "policy": "inline background", "frames": "1000"},
			Question: "How long are commits that carry a checkpoint, who should run it, and at which size of the log?",
			Earlier:  "asked: wal_autocheckpoint 1,000, 10,000, off; PASSIVE between blocks; background"},
		{ID: "D3", Title: "Reorgs", Names: []string{"Reorg"}, Own: true, Layouts: writeLayouts, Changes: true, phases: 1, plan: reorgs,
			Question: "What does it cost to delete 500 rows and insert 500 with the same keys, anywhere in the store, over and over, and does the file grow?",
			Earlier:  "asked: for an hour, p99 < 500 ms"},
		{ID: "D4", Title: "Reads beside writes", Names: []string{"Combined"}, Own: true, Layouts: answers, Changes: true, phases: 5 + ceilingSteps, plan: besides,
			Question: "How many reads a second fit beside 6,000 rows a second of writes, with commits under 2 s?",
			Earlier:  "planned: writes alone, with 100, 1,000 and 5,000 reads a second, and the ceiling by binary search; not measured"},
		{ID: "D5", Title: "Growth", Names: []string{"Degradation"}, Own: true, Layouts: answers, Changes: true, phases: 15, plan: grown("Degradation", (*Lab).degradation),
			Question: "How do commits and reads slow down as the database grows?",
			Earlier:  "planned: 2x, 5x, 10x of 800,000 entities; not measured"},
		{ID: "E1", Title: "Data-centre reads", Names: []string{"DataCentreRead"}, Layouts: answers, phases: 2, plan: centres("DataCentreRead", "clients", []int{1, 10}, (*Lab).centreReads),
			Question: "How fast are the scheduler's questions, every answer checked?",
			Earlier:  "planned: 25/20/20/20/15 over 2 to 21 data centres; not measured"},
		{ID: "E2", Title: "Data-centre writes", Names: []string{"DataCentreWrite"}, Layouts: answers, Changes: true, phases: 4, plan: centres("DataCentreWrite", "dc", []int{0, 30, 70, 100}, (*Lab).centreWrites),
			Question: "What do the updates of a data centre cost, alone and mixed with the base profile?",
			Earlier:  "planned: base only, data centre only, 30/70, 70/30; not measured"},
		{ID: "E3", Title: "Data-centre reads beside writes", Names: []string{"DataCentreCombined"}, Layouts: answers, Changes: true, phases: 2, plan: centres("DataCentreCombined", "qps", []int{100, 500}, (*Lab).centreBeside),
			Question: "Are answers still right, and how fast, while nodes and workloads change?",
			Earlier:  "planned; not measured"},
		{ID: "F1", Title: "Appends", Names: []string{"EventAppend"}, Changes: true, plan: events("Append"),
			Question: "What do appends of 1 to 1,000 events cost?",
			Earlier:  "go-crablet on Postgres: 1.12, 1.47, 3.54 and 24.44 ms of 1, 10, 100 and 1,000 events with 35 in the store; with 61,000 550.41 of 1,000 appends, 5.78, 42.84 and 389.78"},
		{ID: "F2", Title: "Appends of several clients", Names: []string{"EventAppendConcurrent", "EventAppendRandom", "EventAppendBeside"}, Changes: true, plan: events("AppendConcurrent", "AppendRandom", "AppendBeside"),
			Question: "How many appends a second do clients make together?",
			Earlier:  "go-crablet with 61,000 events: 2,485, 3,535, 11,631 and 16,606 events a second of 1, 5, 10 and 20 clients"},
		{ID: "F3", Title: "Conditional appends", Names: []string{"EventAppendConditional"}, Changes: true, plan: events("AppendConditional"),
			core:     map[string]string{"layout": "tags", "profile": "small", "clients": "1 16"},
			Question: "How many appends a second does a store judge and take, each on the condition that a tag is new?",
			Earlier:  "go-crablet has AppendIf and did not measure it"},
		{ID: "F4", Title: "Decisions", Names: []string{"EventDecide"}, Changes: true, plan: events("Decide"),
			Question: "What does a decision cost: a projection, and the append that it guards?",
			Earlier:  "asked, not measured"},
		{ID: "F5", Title: "Queries for events", Names: []string{"EventRead"}, plan: events("Read"),
			Question: "How long do queries take, read to their ends?",
			Earlier:  "go-crablet with 61,000 events: course by id 1.84 ms, courses by category 2.06, course or student 4.59, enrolments by grade 1.41"},
		{ID: "F6", Title: "Memory of a read", Names: []string{"EventReadMemory"}, plan: events("ReadMemory"),
			Question: "By how much does memory grow while everything is read?",
			Earlier:  "asked, not measured"},
		{ID: "F7", Title: "Subscription", Names: []string{"EventStream"}, plan: events("Stream"),
			Question: "How long does it take to replay the events of one student?",
			Earlier:  "go-crablet: 0.51 ms with 35 events, 2.17 with 61,000"},
		{ID: "F8", Title: "Projections", Names: []string{"EventProject"}, plan: events("Project"),
			Question: "How long does a pass of one and of five projections take?",
			Earlier:  "go-crablet: 0.42 and 0.51 ms with 35 events, 1.18 and 2.34 with 61,000"},
		{ID: "G1", Title: "Permissions", Names: []string{"RebacIngest", "Rebac"}, Layouts: []string{"rebac"}, plan: measurePermissions,
			Question: "How fast are permission checks and listings through organizations, groups in groups and access lists?",
			Earlier:  "one client, p95: SpiceDB on Postgres 2.4 to 4.9 ms a check and 19 to 76 ms a listing, Postgres 17 1.0 to 7.9 and 1.0 to 3.0; ingest 3.6 to 54 s"},
		{ID: "G2", Title: "Social graph", Names: []string{"SocialLoad", "Social"}, Layouts: []string{"social"}, Changes: true, plan: measureSocial,
			Question: "Which rates of permission checks with 1 % writes are carried within AuthZed's service levels?",
			Earlier:  "AuthZed at 10M relationships: 1,000 a second with check p95 19.7 ms on 48 vCPU, 10,000 with 16.3 ms on 84"},
		{ID: "H1", Title: "Entity service", Names: []string{"Service", "ServiceEvents"}, Layouts: []string{"compact"}, Changes: true, plan: measureService,
			Question: "What does a client of the service get over REST and over gRPC, payloads sealed, and how much of that is the protocol?",
			Earlier:  "REST put ~1 ms, get ~1 ms warm and 3 to 5 cold, put and get ~2; gRPC put ~0.6, get ~0.3; 32 clients ~910 puts and ~970 gets a second; 1,000 new entities ~1 s"},
		{ID: "H3", Title: "Arkiv node", Names: []string{"Node"}, Layouts: []string{"compact", "arkiv", "simple"}, Changes: true, phases: 12 * len(nodeLoads), plan: measureNode,
			Question: "What do the network's SDKs get of a node that follows a chain at 6,000 rows a second, over HTTP and over WebSocket?",
			Earlier:  "asked: by key 15,000 and mix A 4,000 calls a second, 32 clients, layout compact, 800,000 entities"},
		{ID: "I3", Title: "Reads beside writes, the curve", Names: []string{"Frontier"}, Own: true, Layouts: answers, Changes: true, phases: 12, plan: frontier,
			Question: "How many reads a second do ten clients get beside 0 to 50,000 rows a second of writes?",
			Earlier:  "asked: X rows/s with Y reads/s while commits stay below 2 s and reads below 100 ms at p99; not measured"},
		{ID: "I5", Title: "The loads of a first version", Names: []string{"V1"}, Own: true, Layouts: answers, Changes: true, phases: 18, plan: firstVersion,
			Question: "Does a store of 621,000 entities take 10,000 to 50,000 rows a second with 1,000 to 10,000 reads a second?",
			Earlier:  "asked: 10K, 25K and 50K rows/s with 1K, 5K and 10K reads/s; not measured"},
		{ID: "J1", Title: "First sync", Names: []string{"FirstSync"}, Layouts: answers, plan: operated("FirstSync", "source", map[string]operation{"tar": (*Lab).fromTar, "chain": (*Lab).fromChain}),
			Question: "How long does a new store take to get to the head, from a block tar and from a chain by JSON-RPC?",
			Earlier:  "asked, not measured"},
		{ID: "J2", Title: "Import", Names: []string{"Import"}, Layouts: answers, Changes: true, plan: operated("Import", "source", map[string]operation{"sqlite-store": (*Lab).importArkiv}),
			Question: "How long does the import of a database of Arkiv's sqlite-store take?",
			Earlier:  "asked, not measured"},
		{ID: "J3", Title: "Backup, restore and check", Names: []string{"Backup"}, Own: true, Layouts: answers, Changes: true, plan: operated("Backup", "rate", map[string]operation{ftoa(seedRowRate): (*Lab).backup}),
			Question: "How long do a backup beside 6,000 rows a second of writes, its restoration and a check take, and what do commits feel of the backup?",
			Earlier:  "asked, not measured"},
		{ID: "J4", Title: "Restart", Names: []string{"Restart"}, Own: true, Layouts: answers, Changes: true, phases: 4, plan: operated("Restart", "after", map[string]operation{"stop": (*Lab).restart, "kill": (*Lab).restart}),
			Question: "How soon after a clean stop and after a kill are reads at their full rate again?",
			Earlier:  "asked, not measured"},
		{ID: "J5", Title: "Growth a day", Names: []string{"DailyGrowth"}, Own: true, Layouts: answers, Changes: true, phases: 1, plan: operated("DailyGrowth", "rate", map[string]operation{ftoa(seedRowRate): (*Lab).growth}),
			Question: "By how much does a database grow in a day at 6,000 rows a second?",
			Earlier:  "asked, not measured"},
		{ID: "Q1", Title: "First look", Names: []string{"RealBlocks", "GeneratedBlocks"}, Own: true, Layouts: []string{"arkiv"}, plan: firstLook,
			Question: "In some minutes: how do the engines do on real blocks of the network and on generated ones?"},
		{ID: "Q2", Title: "One operation at a time", Names: []string{"Commit", "Update", "Get"}, Layouts: answers, Changes: true, phases: 3, plan: operations,
			core:     map[string]string{"layout": "arkiv compact"},
			Question: "What do one commit, one update and one read by key cost?",
			Earlier:  "asked, not measured"},
		{ID: "Q3", Title: "One query at a time", Names: []string{"Query"}, Layouts: answers, phases: 11, plan: queries,
			Question: "What does each query of a fixed set cost, read to its end?",
			Earlier:  "asked, not measured"},
	}
}

// Find returns the experiments with the given IDs or sections, in the order of
// the catalogue; all for none.
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
	var own []Experiment
	for _, e := range found {
		switch {
		case e.Own:
			own = append(own, e)
		case slices.ContainsFunc(ids, func(id string) bool { return strings.EqualFold(id, e.ID) }):
			return nil, fmt.Errorf("%s asks for the base profile or data of its own: it does not run on a source", e.ID)
		}
	}
	if len(own) == 0 {
		return nil, fmt.Errorf("nothing of %s runs on a source", strings.Join(ids, ", "))
	}
	return own, nil
}

// What an experiment may take: besides its phases, which count twice for what is
// around them, workTime for each workScale of the largest size, since data sets are
// built and commits counted in proportion.
const (
	manyPhases = 60
	workTime   = 15 * time.Minute
	workScale  = 0.05
)

// Timeout returns the time after which a block of the experiment on one engine hangs
// and does not merely take long.
func (e Experiment) Timeout(o Options) time.Duration {
	layouts := cmp.Or(len(o.Layouts), len(e.Layouts), 1)
	phases := cmp.Or(e.phases, manyPhases) * max(len(o.Rates), len(o.Sizes), 1)
	o.whole()
	size := max(o.worth(slices.Max(append([]float64{o.Scale}, o.Sizes...))), workScale) / workScale
	work := time.Duration(size * float64(workTime))
	return time.Duration(layouts) * (work + time.Duration(2*phases)*o.Phase)
}
