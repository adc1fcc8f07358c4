package lab

import (
	"strings"

	"github.com/varvedb/varve/bench/row"
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/schemas"
)

type (
	ops    = map[string]Run
	values = map[string]string
	views  = []report.View
)

var words = strings.Fields

func columns(units ...string) []report.Column { return report.Columns("", units...) }
func engines(units ...string) []report.Column { return report.Across("engine", units...) }

// change makes a comparison of the rows a second under one setting with others.
func change(key, from string, to ...string) *report.Compare {
	return &report.Compare{Key: key, From: from, To: to, Unit: "rows/s"}
}

// indexCost is a table of the cost of indexes.
func indexCost(rows string) views {
	return views{{Largest: "rows", Rows: rows, Columns: engines("rows/s"),
		Compare: change("indexes", "0", "2", "6")}}
}

// firstLookView is a view that shows a newcomer engines and layouts with the
// same blocks.
func firstLookView(title, filter string) report.View {
	return report.View{Title: title, Filter: filter, Rows: "/engine /layout@alpha", Ranked: true,
		Columns: columns("commit-p50-ms=commit", "commit-p95-ms=its p95", "get-p50-ms=get",
			"query-p50-ms=query", "load-s=load, s", "B/ent=B/entity")}
}

// costs is a view of the machine resources used by an operation of a part.
func costs(title, rows, part string) report.View {
	return report.View{Title: title, Rows: rows,
		Columns: columns(part+"cpu-ns/op=CPU time, ns", part+"write-B/op=bytes written",
			part+"read-B/op=bytes read", part+"syncs/op=syncs")}
}

var (
	// asked are the columns for writes and reads at fixed rates: delivered,
	// late and given up of each, and their latencies.
	asked = columns("rows/s", "commit-late=commits late", "commit-skipped=given up",
		"p50-ms=commit p50, ms", "p99-ms", "max-ms", "qps=reads/s", "late=reads late",
		"skipped=given up", "read-p50-ms=read p50, ms", "read-p99-ms=p99 ms")

	// synced is a view of the ways in which a store can receive another
	// source's data.
	synced = report.View{Rows: "/engine /layout /scale@num /source@alpha",
		Columns: columns("sync-s=seconds", "rows/s", "data-MB=data, MB", "B/row=bytes a row")}
)

const (
	ablation = "/layout@(arkiv-0 arkiv-1 arkiv-2 arkiv-3 arkiv-4 arkiv-5 arkiv-6 arkiv-7 " +
		"arkiv-8 arkiv-9 arkiv-10 arkiv-11 arkiv-12 arkiv-13)"

	// eventRows has a row for each number of events in the store.
	eventRows = "/profile@(tiny small 1000000 10000000)"
)

// sections are the catalogue: every experiment is one value here.
var sections = []section{
	{"What a commit costs", []Experiment{{
		ID: "A1", Title: "Index cost in memory",
		Question:  "What do no, 2 and 6 indexes cost when the disk costs nothing?",
		Published: "1M rows, Python: 2.96 times (single) and 3.59 times (batch) with 2 indexes, 6.23 and 7.88 times with 6",
		Plan: insertPlan{size: 1_000_000, memory: true, indexes: []int{0, 2, 6},
			modes: []row.Mode{row.Single, row.Bulk}}.variants,
		Views: indexCost("/indexes@num /mode@alpha"),
	}, {
		ID: "A2", Title: "Index cost on file, 10,000 rows a commit",
		Question:  "What do the indexes cost with large commits?",
		Published: "10M rows: 11.8 times over none with 2 indexes, 58.6 times with 6",
		Plan: insertPlan{size: 10_000_000, perCommit: 10_000, indexes: []int{0, 2, 6},
			modes: []row.Mode{row.Bulk}}.variants,
		Views: indexCost("/indexes@num"),
	}, {
		ID: "A3", Title: "Index cost on file, 500 rows a commit",
		Question:  "What do the indexes cost with commits of a block's size, in bulk and row by row?",
		Published: "10M rows: 41 times over none with 2 indexes, 109 times with 6; row by row 36 and 93 times",
		Plan: insertPlan{size: 10_000_000, perCommit: 500, indexes: []int{0, 2, 6},
			modes: []row.Mode{row.Bulk, row.Single}}.variants,
		Views: indexCost("/indexes@num /mode@alpha"),
	}, {
		ID: "A4", Title: "Insert mode",
		Question:  "Does it matter how 500 rows reach the engine, with the commits the same?",
		Published: "1M rows, 6 indexes: at most 3 % between executemany and single inserts, in Python",
		Plan: insertPlan{size: 1_000_000, perCommit: 500, indexes: []int{6},
			modes: row.Modes}.variants,
		Views: views{{Largest: "rows", Rows: "/mode@alpha", Columns: engines("rows/s"),
			Compare: change("mode", "bulk", "single", "batch")}},
	}, {
		ID: "A5", Title: "Full schema, realistic payloads", Layouts: words("arkiv"),
		Question:  "How many entities a second does the schema of 13 indexes take, and what do payloads cost?",
		Published: "714 typical, 85 large, 3,141 minimal entities/s; with payloads of 256 B 3,241, 1,842 and 6,849",
		Plan:      committing((*Lab).seedCommits),
		Views:     views{{Rows: "/profile@alpha /entities@num", Columns: engines("ent/s")}},
	}, {
		ID: "A6", Title: "Without history", Layouts: words("simple"),
		Question:  "What is saved by six indexes and no history?",
		Published: "735 typical, 82 large, 3,137 minimal entities/s: 1.03, 0.96 and 1.00 times the full schema",
		Plan:      committing((*Lab).seedCommits),
		Views:     views{{Rows: "/profile@alpha /entities@num", Columns: engines("ent/s")}},
	}, {
		ID: "A7", Title: "Memory", Layouts: words("arkiv"),
		Question:  "How much memory for caching pays with large payloads?",
		Published: "50,000 entities of 10 and 7 attributes and 50 KB, cache 3 to 7.5 GB: 69 to 75 entities/s, no effect",
		Plan:      committing((*Lab).memoryCommits),
		Views: views{{Title: "memory as a multiple of the data", Largest: "entities",
			Rows: "/memory@num", Columns: engines("ent/s")}},
	}, {
		ID: "A8", Title: "Blocks as in production", Own: true, Changes: true,
		Question:  "What makes a commit slow, over blocks whose number of entities is heavy-tailed?",
		Published: "50,000 production blocks: attributes 0.96, entities 0.90, payload -0.06; strings 0.97, numbers 0.94",
		Layouts:   words("arkiv simple"), Plan: sampledBlocks,
		Views: views{
			{Filter: ".name:Block", Rows: "/profile /engine /layout /blocks@num", Fit: true},
			{Title: "correlations", Filter: "/profile:/^(mendoza$|own-)/",
				Rows: "/engine /layout /blocks@num",
				Columns: columns("r-entities=entities", "r-attributes=attributes",
					"r-strings=strings", "r-numbers=numbers", "r-payload-each=mean payload")},
			{Title: "partial correlations, blocks whose parts vary independently",
				Filter: "/profile:independent", Rows: "/engine /layout /blocks@num",
				Columns: columns("partial-entities=entities", "partial-strings=strings",
					"partial-numbers=numbers", "partial-payload_bytes=payload")},
		},
	}, {
		ID: "A11", Title: "Index by index, writes",
		Question: "What does each of the thirteen indexes add to a commit, in Arkiv's order?",
		Plan:     committing((*Lab).typicalCommits, schemas.AblationLayouts()...),
		Views:    views{{Largest: "entities", Rows: ablation, Columns: engines("ent/s")}},
	}, {
		ID: "A12", Title: "Index by index, reads", Own: true,
		Question: "Which of the thirteen indexes do the read mixes need?",
		Plan:     reading([]readLoad{{clients: 1, reads: shortReads}}, schemas.AblationLayouts()...),
		Views: views{{Largest: "scale", Rows: ablation,
			Columns: report.Across("mix", "qps=reads/s")}},
	}, {
		ID: "A13", Title: "Storage", Layouts: words("arkiv"),
		Question: "What does the disk, and what does the promise of durability cost?",
		Plan:     committing((*Lab).storageCommits),
		Views: views{{Largest: "entities", Rows: "/durability@alpha /store@alpha",
			Columns: engines("ent/s")}},
	}, {
		ID: "A14", Title: "Attributes, payload or entities", Layouts: words("arkiv simple"),
		Question:  "How much does each attribute, each byte of payload and each entity add to a commit?",
		Published: "contradictory: payload dominates (22 times, Experiment 5), payload does not matter (-0.06, Experiment 8)",
		Plan:      designed,
		Views: views{{Filter: ".name:Block", Largest: "entities", Rows: "/layout /engine",
			Fit: true}},
	}, {
		ID: "A15", Title: "Where payloads are kept",
		Question: "Is it better to keep payloads in the row, in a table of their own, compressed, or in a file?",
		Plan:     payloads,
		Views: views{{Rows: "/engine /content@alpha /bytes@num /kept@(row table zstd file)",
			Columns: columns("ent/s=entities/s", "p50-ms=commit p50, ms", "p99-ms",
				"B/ent=bytes an entity", "read-p50-ms=read p50, ms", "read-p99-ms=p99 ms")}},
	}, {
		ID: "A16", Title: "Cap on writes a block", Changes: true, Layouts: written,
		Question: "How long are commits of the same rows in blocks of 100 to 10,000?",
		Plan:     capped,
		Views: views{{Rows: "/engine /layout /cap@num",
			Columns: columns("rows/s", "p50-ms", "p99-ms", "max-ms")}},
	}, {
		ID: "A17", Title: "Page size", Changes: true, Layouts: written,
		Question: "What do pages of 4 to 32 KiB change, of data that fit into memory and of ten times as much?",
		Plan:     pageSizes,
		Views: views{{Title: "memory as a multiple of the data", Largest: "scale",
			Rows: "/engine /layout /memory@num /page@num",
			Columns: columns("load-rows/s=loading, rows/s", "p50-ms=commit p50, ms", "p99-ms",
				"wal-MB=WAL, MB", "data-MB=data, MB", "qps-A=reads/s, A",
				"disk-reads/s-A=pages read from the disk/s")}},
	}}},
	{"Loading", []Experiment{{
		ID: "B1", Title: "Loading the base profile", Own: true, Layouts: written,
		Question:  "How long does it take to load the base profile and then its indexes, and how large is it?",
		Published: "planned: 13 GB at 1x, 27, 67 and 133 GB at 2x, 5x and 10x",
		Plan:      atSizes("Load", 0, 1, (*Trial).load),
		Views:     views{{Rows: "/scale@num", Columns: engines("rows/s", "data-MB")}},
	}}},
	{"Reads", []Experiment{{
		ID: "C1", Title: "Read mixes, capacity", Own: true, Layouts: readLayouts,
		Question: "How many reads a second does each mix reach with 1 and with 10 clients, and how fast are they?",
		Plan:     capacity,
		core:     values{"layout": "arkiv compact", "clients": "1", "mix": "A B C W"},
		Views: views{{Filter: "/layout:compact", Largest: "scale",
			Rows:    "/engine /mix@alpha /clients@num",
			Columns: columns("qps=reads/s", "p50-ms", "p95-ms", "p99-ms")},
			{Title: "what a read costs", Rows: "/engine /layout /scale@num /clients@num /mix@alpha",
				Columns: columns("cpu-ns/op=CPU time, ns", "read-B/op=bytes read")}},
	}, {
		ID: "C2", Title: "Read mixes at a rate", Own: true, Layouts: answers,
		Question: "What are the latencies at 100 to 10,000 reads a second, from the moment a read was due?",
		Plan: reading([]readLoad{{clients: 10, rate: 100}, {clients: 10, rate: 1_000},
			{clients: 10, rate: 5_000}, {clients: 10, rate: 10_000}}),
		Views: views{{Largest: "scale",
			Rows:    "/engine /mix@alpha /loop@(open-100 open-1000 open-5000 open-10000)",
			Columns: columns("qps=reads/s", "p50-ms", "p99-ms", "late", "skipped=given up")}},
	}, {
		ID: "C3", Title: "Cold and warm", Own: true, Layouts: answers,
		Question: "What do reads cost when nothing is cached, when only the page cache is warm, and when all is?",
		Plan: reading([]readLoad{{temperature: cold}, {temperature: lukewarm},
			{temperature: warm}}),
		Views: views{{Largest: "scale",
			Rows: "/engine /mix@alpha /temperature@(cold lukewarm warm)",
			Columns: columns("qps=reads/s", "p99-ms", "resident-before=part resident before",
				"resident-after=after")}},
	}, {
		ID: "C4", Title: "Memory against size", Own: true, Layouts: answers,
		Question: "How many reads a second does a store of a size reach with how much memory?",
		Plan:     againstMemory,
		Views: views{{Title: "memory in GiB",
			Rows: "/engine /layout /mix@alpha /scale@num /clients@num /memory@num",
			Columns: columns("qps=reads/s", "p50-ms", "p99-ms",
				"disk-reads/s=pages read from the disk/s")}},
	}}},
	{"Sustained writes, and reads beside them", []Experiment{{
		ID: "D1", Title: "Sustained writes", Own: true, Changes: true, Layouts: writeLayouts,
		Question:  "How long are commits at 6,000 rows a second, and how many rows a second can be kept up?",
		Published: "targets: p50 below 500, p99 below 1,500, max below 2,000 ms, over 5,000 rows/s",
		Plan:      sustain,
		Views: views{{Largest: "scale", Rows: "/engine /layout /rate@alpha",
			Columns: columns("rows/s", "settled-rows/s=with merging done", "p50-ms", "p99-ms",
				"max-ms", "late", "skipped=given up", "wal-MB=WAL, MB")},
			costs("what a commit costs", "/engine /layout /scale@num /rate@alpha", "")},
	}, {
		ID: "D2", Title: "Checkpoint stalls", Own: true, Changes: true, Layouts: written,
		Question: "How long are commits that carry a checkpoint, who should run it, and at which size of the log?",
		Plan:     checkpoints,
		Views: views{{Largest: "scale", Rows: "/engine /policy@alpha /frames@num",
			Columns: columns("rows/s", "late", "skipped=given up", "wal-MB=WAL, MB", "p99-ms",
				"max-ms")}},
	}, {
		ID: "D3", Title: "Reorganisations", Own: true, Changes: true, Layouts: writeLayouts,
		Question:  "What does deleting and inserting the same 500 keys over and over cost, and does the file grow?",
		Published: "asked: for an hour, p99 below 500 ms",
		Plan:      reorgs,
		Views: views{{Largest: "scale", Rows: "/engine /for@alpha",
			Columns: columns("p50-ms", "p99-ms", "max-ms", "growth-MB=growth, MB")}},
	}, {
		ID: "D4", Title: "Reads while rows are written", Own: true, Changes: true, Layouts: answers,
		Question: "How many reads a second are answered while 6,000 rows a second are written?",
		Plan:     besides,
		Views: views{{Title: "SQLite and Postgres, smaller sizes", Filter: "-/scale:1",
			Rows: "/engine /scale@num /rate@num /qps@num",
			Columns: columns("rows/s", "commit-late=commits late", "commit-skipped=given up",
				"p99-ms=commit p99, ms", "qps=reads/s", "late=reads late", "skipped=given up",
				"read-p99-ms=read p99, ms")}},
	}, {
		ID: "D5", Title: "Growth", Own: true, Changes: true, Layouts: answers,
		Question: "How do commits and reads slow down as the database grows?",
		Plan:     atSizes("Degradation", 5, 0, (*Trial).degradation),
		Views: views{{Rows: "/engine /layout /scale@num",
			Columns: columns("p50-ms=commit p50, ms", "max-ms=max, ms", "late", "wal-MB=WAL, MB",
				"qps-A=reads/s, A", "qps-C=reads/s, C", "qps-W=reads/s, W", "data-MB=data, MB")}},
	}}},
	{"The data centre, every answer known", []Experiment{{
		ID: "E1", Title: "Data-centre reads", Layouts: answers,
		Question: "How fast are the scheduler's questions, every answer checked?",
		Plan:     centres("DataCentreRead", "clients", []int{1, 10}, (*Trial).centreReads),
		Views:    views{{Rows: "/scale@num /clients@num", Columns: engines("qps", "p99-ms")}},
	}, {
		ID: "E2", Title: "Data-centre writes", Changes: true, Layouts: written,
		Question: "What do the updates of a data centre cost, alone and mixed with the base profile?",
		Plan:     centres("DataCentreWrite", "dc", []int{0, 30, 70, 100}, (*Trial).centreWrites),
		Views: views{{Title: "dc is the part of updates, in percent", Rows: "/scale@num /dc@num",
			Columns: engines("rows/s", "p99-ms")}},
	}, {
		ID: "E3", Title: "V1 on a data centre", Changes: true, Layouts: answers,
		Question: "Does a data centre of 621,000 entities get V1's loads, updates and reads due at their times?",
		Plan:     centreVersion,
		Views:    views{{Rows: "/engine /layout /scale@num /rate@num /qps@num", Columns: asked}},
	}}},
	{"Event store", []Experiment{{
		ID: "F1", Title: "Appends", Changes: true,
		Question:  "What do appends of 1 to 1,000 events cost?",
		Published: "go-crablet on Postgres with 35 events: 1.12, 1.47, 3.54 and 24.44 ms of 1, 10, 100 and 1,000; with 61,000 its 1,000 take 390 ms",
		Plan:      events("Append"),
		Views: views{{Filter: "/layout:tags", Rows: eventRows + " /batch@num",
			Columns: engines("ev/s")}},
	}, {
		ID: "F2", Title: "Appends of several clients", Changes: true,
		Question:  "How many appends a second do clients make together?",
		Published: "go-crablet with 61,000 events: 2,485, 3,535, 11,631 and 16,606 events/s of 1, 5, 10 and 20 clients, 100 events an append",
		Plan:      events("AppendConcurrent", "AppendRandom"),
		Views: views{{Filter: ".name:EventAppendConcurrent /layout:tags",
			Rows: eventRows + " /clients@num", Columns: engines("ev/s")}},
	}, {
		ID: "F3", Title: "Conditional appends", Changes: true,
		Question: "How many appends a second succeed, each on the condition that a tag is new?",
		Plan:     events("AppendConditional"),
		core:     values{"layout": "tags", "profile": "small", "clients": "1 16"},
		Views: views{{Filter: "/layout:tags", Rows: eventRows + " /clients@num",
			Columns: engines("op/s")}},
	}, {
		ID: "F4", Title: "Decisions", Changes: true,
		Question: "What does a decision cost: a projection, and the append that it guards?",
		Plan:     events("Decide"),
		Views: views{{Filter: "/layout:tags /items:/^$/", Rows: eventRows + " /clients@num",
			Columns: engines("op/s")}},
	}, {
		ID: "F5", Title: "Queries for events",
		Question:  "How long do queries take, read to their ends?",
		Published: "go-crablet with 61,000 events: course by id 1.84 ms, courses by category 2.06, course or student 4.59, enrolments by grade 1.41",
		Plan:      events("Read"),
		Views: views{{Filter: "/layout:tags /profile:(small OR 1000000)",
			Rows: eventRows + " /query@alpha", Columns: engines("p50-ms")}},
	}, {
		ID: "F6", Title: "Memory of a read",
		Question: "By how much does memory grow while everything is read?",
		Plan:     events("ReadMemory"),
		Views:    views{{Filter: "/layout:tags", Rows: eventRows, Columns: engines("rss-MB")}},
	}, {
		ID: "F7", Title: "Subscription",
		Question:  "How long does it take to replay the events of one student?",
		Published: "go-crablet: 0.51 ms with 35 events, 2.17 with 61,000",
		Plan:      events("Stream"),
		Views:     views{{Filter: "/layout:tags", Rows: eventRows, Columns: engines("p50-ms")}},
	}, {
		ID: "F8", Title: "Projections",
		Question:  "How long does a pass of one and of five projections take?",
		Published: "go-crablet: 0.42 and 0.51 ms with 35 events, 1.18 and 2.34 with 61,000",
		Plan:      events("Project"),
		Views: views{{Filter: "/layout:tags", Rows: eventRows + " /projectors@num",
			Columns: engines("p50-ms")}},
	}}},
	{"Permissions", []Experiment{{
		ID: "G1", Title: "Permissions", Layouts: words("rebac"),
		Question:  "How fast are permission checks and lists through organizations, groups and access lists?",
		Published: "one client, p95: SpiceDB on Postgres 2.4 to 4.9 ms a check and 19 to 76 ms a listing, Postgres 17 1.0 to 7.9 and 1.0 to 3.0; ingest 3.6 to 54 s",
		Plan:      measurePermissions,
		Views: views{
			{Filter: "/profile:full /closure:materialised /clients:1", Rows: "/op@alpha",
				Columns: engines("p95-ms")},
			{Title: "loading", Filter: ".name:RebacIngest", Rows: "/profile",
				Columns: engines("ingest-s")},
		},
	}, {
		ID: "G2", Title: "Social graph", Changes: true, Layouts: words("social"),
		Question:  "Which rates of permission checks with 1 % writes are carried within AuthZed's service levels?",
		Published: "AuthZed at 10M relationships: 1,000 a second with check p95 19.7 ms on 48 vCPU, 10,000 with 16.3 ms on 84",
		Plan:      measureSocial,
		Views: views{{Filter: ".name:Social", Rows: "/relationships@num /qps@num",
			Columns: engines("qps", "late", "skipped=given up", "check-p95-ms", "write-p95-ms")}},
	}}},
	{"Entity service and node", []Experiment{{
		ID: "H1", Title: "Entity service", Changes: true, Layouts: words("compact"),
		Question:  "What does a client get over REST and gRPC, payloads sealed, and what does the protocol cost?",
		Published: "REST put about 1 ms, get 1 ms warm and 3 to 5 cold; gRPC put 0.6, get 0.3; 32 clients 910 puts and 970 gets a second",
		Plan:      registeredPlan("H1"),
		Views: views{
			{Title: "one client", Filter: ".name:Service /clients:1",
				Rows: "/protocol@alpha /op@alpha", Columns: engines("p50-ms")},
			{Title: "32 clients", Filter: ".name:Service /clients:32",
				Rows: "/protocol@alpha /op@alpha", Columns: engines("op/s")},
		},
	}, {
		ID: "H3", Title: "Arkiv node", Changes: true, Layouts: words("compact arkiv simple"),
		Question:  "What do the network's SDKs get of a node that follows a chain at 6,000 rows a second?",
		Published: "asked: by key 15,000 and mix A 4,000 calls a second, 32 clients, layout compact, 800,000 entities",
		Plan:      registeredPlan("H3"),
		Views: views{{Largest: "scale", Rows: "/engine /protocol@alpha /op@alpha /loop",
			Columns: columns("qps=calls/s", "late", "skipped=given up", "p50-ms", "p99-ms",
				"follow-p99-ms=block p99, ms")}},
	}}},
	{"What a first version must carry", []Experiment{{
		ID: "I3", Title: "Reads while rows are written, by rate", Own: true, Changes: true,
		Question: "How many reads a second do ten clients get while 0 to 50,000 rows a second are written?",
		Layouts:  answers, Plan: frontier,
		Views: views{{Rows: "/engine /layout /scale@num /mix@alpha /rate@num",
			Columns: columns("rows/s", "qps=reads/s", "p50-ms=commit p50, ms", "p99-ms", "max-ms",
				"read-p50-ms=read p50, ms", "read-p99-ms=p99 ms", "commit-late=commits late",
				"commit-skipped=given up")}},
	}, {
		ID: "I5", Title: "The loads of a first version", Own: true, Changes: true, Layouts: answers,
		Question: "Does a store of 621,000 entities take 10,000 to 50,000 rows/s beside 1,000 to 10,000 reads/s?",
		Plan:     firstVersion,
		Views: views{{Largest: "scale", Rows: "/engine /layout /rate@num /qps@num",
			Columns: asked}},
	}}},
	{"Operations", []Experiment{{
		ID: "J1", Title: "First sync", Layouts: written,
		Question: "How long does a new store take to the head, from a block tar and from a chain by JSON-RPC?",
		Plan:     registeredPlan("J1"),
		Views:    views{synced},
	}, {
		ID: "J2", Title: "Import", Changes: true, Layouts: written,
		Question: "How long does the import of a database of Arkiv's sqlite-store take?",
		Plan:     Operated("Import", "source", 0, 1, ops{"sqlite-store": (*Trial).importArkiv}),
		Views:    views{synced},
	}, {
		ID: "J3", Title: "Backup, restore and check", Own: true, Changes: true, Layouts: written,
		Question: "How long do backup, restore and check take beside 6,000 rows/s, and do commits slow down?",
		Plan:     Operated("Backup", "rate", 0, 2, ops{Ftoa(ArkivRowRate): (*Trial).backup}),
		Views: views{{Rows: "/engine /layout /scale@num",
			Columns: columns("data-MB=data, MB", "backup-MB=backup, MB", "backup-s=backup, s",
				"restore-s=restore, s", "check-s=check, s", "rows/s=rows/s meanwhile",
				"p50-ms=commit p50, ms", "p99-ms", "max-ms")}},
	}, {
		ID: "J4", Title: "Restart", Own: true, Changes: true, Layouts: written,
		Question: "How soon after a clean stop and after a kill are reads at their full rate again?",
		Plan: Operated("Restart", "after", 1.5, 0,
			ops{"stop": (*Trial).restart, "kill": (*Trial).restart}),
		Views: views{{Rows: "/engine /layout /scale@num /after@(stop kill)",
			Columns: columns("open-ms=opened, ms", "first-read-ms=first read, ms",
				"first-second-qps=reads in the first second", "warm-qps=warm reads/s",
				"full-rate-s=full rate after, s")}},
	}, {
		ID: "J5", Title: "Growth a day", Own: true, Changes: true, Layouts: written,
		Question: "By how much does a database grow in a day at 6,000 rows a second?",
		Plan:     Operated("DailyGrowth", "rate", 1, 0, ops{Ftoa(ArkivRowRate): (*Trial).growth}),
		Views: views{{Rows: "/engine /layout /scale@num",
			Columns: columns("B/row=bytes a row", "GB/day=GB a day", "data-MB=data before, MB",
				"after-MB=after, MB")}},
	}}},
	{"The machine", []Experiment{{
		ID: "M1", Title: "The machine",
		Question: "Is the machine the same all the time, and nobody else on it?",
		Views: views{{Rows: "host kernel",
			Columns: columns("fsync-p50-ms=fsync p50, ms", "fsync-p99-ms=fsync p99, ms",
				"copy-MB/s=copy, MB/s", "work-ms=fixed program, ms",
				"share-others=others' part of the cores")}},
	}}},
	{"First look", []Experiment{{
		ID: "Q1", Title: "First look", Own: true, Layouts: words("arkiv"),
		Question: "In some minutes: how do the engines and the two layouts do on the same blocks?",
		Plan:     firstLook,
		Views: views{firstLookView("blocks of 100 entities, ms", "-/profile:/^own-/"),
			firstLookView("blocks of your own, ms", "/profile:/^own-/"),
			costs("what a commit costs", "/engine /layout@alpha", "commit-"), costs("what a read costs", "/engine /layout@alpha", "read-")},
	}, {
		ID: "Q2", Title: "One operation at a time", Changes: true, Layouts: written,
		Question: "What do one commit, one update and one read by key cost?",
		Plan:     operations, core: values{"layout": "arkiv compact"},
		Views: views{{Rows: ".name /layout", Columns: engines("p50-ms", "p99-ms")}},
	}, {
		ID: "Q3", Title: "One query at a time", Layouts: answers,
		Question: "What does each query of a fixed set cost, read to its end?",
		Plan:     queries,
		Views:    views{{Rows: "/layout /query", Columns: engines("p50-ms")}},
	}}},
}
