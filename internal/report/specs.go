package report

import "strings"

// Spec is an experiment of the catalogue with the tables that answer it.
type Spec struct {
	ID       string
	Title    string
	Question string
	Found    string // what others published about it, on their machines
	Views    []View
	Sketches []Sketch
}

// engines has a column for each engine of each unit.
func engines(units ...string) (list []Column) {
	for _, u := range units {
		list = append(list, Column{Unit: u, Across: "engine"})
	}
	return list
}

// named are columns of units under names of their own: unit, name, unit, name.
func named(filter string, pairs ...string) (list []Column) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, Column{Unit: pairs[i], Name: pairs[i+1], Filter: filter})
	}
	return list
}

const ablation = "/layout@(arkiv-0 arkiv-1 arkiv-2 arkiv-3 arkiv-4 arkiv-5 arkiv-6 arkiv-7 arkiv-8 arkiv-9 arkiv-10 arkiv-11 arkiv-12 arkiv-13)"

// sections are the experiments by the letter of their ids.
var sections = []struct{ Letter, Title string }{
	{"A", "What a commit costs"}, {"B", "Loading"}, {"C", "Reads"}, {"D", "Sustained writes, and reads beside them"},
	{"E", "The data centre, every answer known"}, {"F", "Event store"}, {"G", "Permissions"}, {"H", "Entity service and node"}, {"I", "What a first version must carry"}, {"J", "Operations"},
	{"M", "The machine"}, {"Q", "First look"},
}

var specs = []Spec{
	{ID: "A1", Title: "Index cost in memory", Question: "What do no, 2 and 6 indexes cost when the disk costs nothing?",
		Found: "1M rows, Python: 2.96 times (single) and 3.59 times (batch) with 2 indexes, 6.23 and 7.88 times with 6",
		Views: []View{{Filter: "experiment:A1", Largest: "rows", Rows: "/indexes@num /mode@alpha", Columns: engines("rows/s"), Compare: &Compare{"indexes", "0", []string{"2", "6"}, "rows/s"}}}},
	{ID: "A2", Title: "Index cost on file, 10,000 rows a commit", Question: "What do the indexes cost with large commits?",
		Found: "10M rows: 11.8 times over none with 2 indexes, 58.6 times with 6",
		Views: []View{{Filter: "experiment:A2", Largest: "rows", Rows: "/indexes@num", Columns: engines("rows/s"), Compare: &Compare{"indexes", "0", []string{"2", "6"}, "rows/s"}}}},
	{ID: "A3", Title: "Index cost on file, 500 rows a commit", Question: "What do the indexes cost with commits of a block's size, in bulk and row by row?",
		Found: "10M rows: 41 times over none with 2 indexes, 109 times with 6; row by row 36 and 93 times",
		Views: []View{{Filter: "experiment:A3", Largest: "rows", Rows: "/indexes@num /mode@alpha", Columns: engines("rows/s"), Compare: &Compare{"indexes", "0", []string{"2", "6"}, "rows/s"}}}},
	{ID: "A4", Title: "Insert mode", Question: "Does it matter how 500 rows reach the engine, with the commits the same?",
		Found: "1M rows, 6 indexes: at most 3 % between executemany and single inserts, in Python",
		Views: []View{{Filter: "experiment:A4", Largest: "rows", Rows: "/mode@alpha", Columns: engines("rows/s"), Compare: &Compare{"mode", "bulk", []string{"single", "batch"}, "rows/s"}}}},
	{ID: "A5", Title: "Full schema, realistic payloads", Question: "How many entities a second does the schema of 13 indexes take, and what do payloads cost?",
		Found: "714 typical, 85 large, 3,141 minimal entities/s; with payloads of 256 B 3,241, 1,842 and 6,849",
		Views: []View{{Filter: "experiment:A5", Rows: "/profile@alpha /entities@num", Columns: engines("ent/s")}}},
	{ID: "A6", Title: "Without history", Question: "What is saved by six indexes and no history?",
		Found: "735 typical, 82 large, 3,137 minimal entities/s: 1.03, 0.96 and 1.00 times the full schema",
		Views: []View{{Filter: "experiment:A6", Rows: "/profile@alpha /entities@num", Columns: engines("ent/s")}}},
	{ID: "A7", Title: "Memory", Question: "How much memory for caching pays with large payloads?",
		Found: "50,000 entities of 10 and 7 attributes and 50 KB, cache 3 to 7.5 GB: 69 to 75 entities/s, no effect",
		Views: []View{{Title: "memory as a multiple of the data", Filter: "experiment:A7", Largest: "entities", Rows: "/memory@num", Columns: engines("ent/s")}}},
	{ID: "A8", Title: "Blocks as in production", Question: "What is the time of a commit correlated with, over blocks whose number of entities is heavy-tailed?",
		Found: "50,000 production blocks: attributes 0.96, entities 0.90, payload -0.06; strings 0.97, numbers 0.94",
		Views: []View{
			{Filter: "experiment:A8 .name:Block", Rows: "/profile /engine /layout /blocks@num", Fit: true},
			{Title: "correlations", Filter: "experiment:A8 /profile:/^(mendoza$|own-)/", Rows: "/engine /layout /blocks@num",
				Columns: named("", "r-entities", "entities", "r-attributes", "attributes", "r-strings", "strings", "r-numbers", "numbers", "r-payload-each", "mean payload")},
			{Title: "partial correlations, blocks whose parts vary independently", Filter: "experiment:A8 /profile:independent", Rows: "/engine /layout /blocks@num",
				Columns: named("", "partial-entities", "entities", "partial-strings", "strings", "partial-numbers", "numbers", "partial-payload_bytes", "payload")},
		}},
	{ID: "A11", Title: "Index by index, writes", Question: "What does each of the thirteen indexes add to a commit, in Arkiv's order?",
		Views: []View{{Filter: "experiment:A11", Largest: "entities", Rows: ablation, Columns: engines("ent/s")}}},
	{ID: "A12", Title: "Index by index, reads", Question: "Which of the thirteen indexes do the read mixes need?",
		Views: []View{{Filter: "experiment:A12", Largest: "scale", Rows: ablation, Columns: []Column{{Unit: "qps", Name: "reads/s", Across: "mix"}}}}},
	{ID: "A13", Title: "Storage", Question: "What does the disk, and what does the promise of durability cost?",
		Views: []View{{Filter: "experiment:A13", Largest: "entities", Rows: "/durability@alpha /store@alpha", Columns: engines("ent/s")}}},
	{ID: "A14", Title: "Attributes, payload or entities", Question: "How much does each attribute, each byte of payload and each entity add to a commit?",
		Found: "contradictory: payload dominates (22 times, Experiment 5), payload does not matter (-0.06, Experiment 8)",
		Views: []View{{Filter: "experiment:A14 .name:Block", Largest: "entities", Rows: "/layout /engine", Fit: true}}},
	{ID: "A15", Title: "Where payloads are kept", Question: "What does it change to keep payloads in the row, in their own table, compressed, or in a file beside the database?",
		Views: []View{{Filter: "experiment:A15", Rows: "/engine /content@alpha /bytes@num /kept@(row table zstd file)",
			Columns: named("", "ent/s", "entities/s", "p50-ms", "commit p50, ms", "p99-ms", "p99 ms", "B/ent", "bytes an entity", "read-p50-ms", "read p50, ms", "read-p99-ms", "p99 ms")}}},
	{ID: "A16", Title: "Cap on writes a block", Question: "How long are commits of the same rows in blocks of 100 to 10,000?",
		Views: []View{{Filter: "experiment:A16", Rows: "/engine /layout /cap@num", Columns: named("", "rows/s", "rows/s", "p50-ms", "p50 ms", "p99-ms", "p99 ms", "max-ms", "max ms")}}},
	{ID: "A17", Title: "Page size", Question: "What do pages of 4 to 32 KiB change, of data that fit into memory and of ten times as much?",
		Views: []View{
			{Title: "memory as a multiple of the data", Filter: "experiment:A17 -/layout:tags", Largest: "scale", Rows: "/engine /layout /memory@num /page@num",
				Columns: named("", "load-rows/s", "loading, rows/s", "p50-ms", "commit p50, ms", "p99-ms", "p99 ms", "wal-MB", "WAL, MB", "data-MB", "data, MB", "qps-A", "reads/s, A", "disk-reads/s-A", "pages read from the disk/s")},
			{Title: "events", Filter: "experiment:A17 /layout:tags", Rows: "/engine /profile /op@alpha /page@num",
				Columns: named("", "p50-ms", "p50 ms", "p99-ms", "p99 ms", "wal-MB", "WAL, MB", "data-MB", "data, MB")},
		}},
	{ID: "B1", Title: "Loading the base profile", Question: "How long does it take to load the base profile, its indexes made afterwards, and how large is it then?",
		Found: "planned: 13 GB at 1x, 27, 67 and 133 GB at 2x, 5x and 10x",
		Views: []View{{Filter: "experiment:B1", Rows: "/scale@num", Columns: engines("rows/s", "data-MB")}}},
	{ID: "C1", Title: "Read mixes, capacity", Question: "How many reads a second does each mix reach with 1 and with 10 clients, and how long do they take?",
		Views: []View{{Filter: "experiment:C1 /layout:compact", Largest: "scale", Rows: "/engine /mix@alpha /clients@num", Columns: named("", "qps", "reads/s", "p50-ms", "p50 ms", "p95-ms", "p95 ms", "p99-ms", "p99 ms")}}},
	{ID: "C2", Title: "Read mixes at a rate", Question: "What are the latencies at 100 to 10,000 reads a second, from the moment a read was due?",
		Views: []View{{Filter: "experiment:C2", Largest: "scale", Rows: "/engine /mix@alpha /loop@(open-100 open-1000 open-5000 open-10000)", Columns: named("", "qps", "reads/s", "p50-ms", "p50 ms", "p99-ms", "p99 ms", "late", "late", "skipped", "skipped")}}},
	{ID: "C3", Title: "Cold and warm", Question: "What do reads cost when nothing is cached, when only the page cache is warm, and when all is?",
		Views: []View{{Filter: "experiment:C3", Largest: "scale", Rows: "/engine /mix@alpha /temperature@(cold lukewarm warm)", Columns: named("", "qps", "reads/s", "p99-ms", "p99 ms", "resident-before", "part resident before", "resident-after", "after")}}},
	{ID: "C4", Title: "Memory against size", Question: "How many reads a second does a store of a size reach with how much memory?",
		Views: []View{{Title: "memory in GiB", Filter: "experiment:C4", Rows: "/engine /layout /scale@num /clients@num /memory@num", Columns: named("", "qps", "reads/s", "p50-ms", "p50 ms", "p99-ms", "p99 ms", "disk-reads/s", "pages read from the disk/s")}}},
	{ID: "D1", Title: "Sustained writes", Question: "What are the latencies of commits at 6,000 rows a second, and how many rows a second can be kept up?",
		Found: "targets: p50 below 500, p99 below 1,500, max below 2,000 ms, over 5,000 rows/s",
		Views: []View{{Filter: "experiment:D1", Largest: "scale", Rows: "/engine /layout /rate@alpha", Columns: named("", "rows/s", "rows/s", "settled-rows/s", "with merging done", "p50-ms", "p50 ms", "p99-ms", "p99 ms", "max-ms", "max ms", "late", "late", "wal-MB", "WAL, MB")}}},
	{ID: "D2", Title: "Checkpoint stalls", Question: "How long are commits that carry a checkpoint, who should run it, and at which size of the log?",
		Views: []View{{Filter: "experiment:D2 (/kind:(with-checkpoint OR without-checkpoint) OR /kind:/^$/)", Largest: "scale", Rows: "/engine /policy@alpha /frames@num", Columns: append(append(named("/kind:/^$/", "rows/s", "rows/s", "wal-MB", "WAL, MB", "late", "late"),
			named("/kind:without-checkpoint", "p99-ms", "p99 ms without")...), named("/kind:with-checkpoint", "p99-ms", "p99 ms with one")...)}}},
	{ID: "D3", Title: "Reorganisations", Question: "What does it cost to delete 500 rows and insert 500 with the same keys, over and over, and does the file grow?",
		Found: "asked: for an hour, p99 below 500 ms",
		Views: []View{{Filter: "experiment:D3", Largest: "scale", Rows: "/engine /for@alpha", Columns: named("", "p50-ms", "p50 ms", "p99-ms", "p99 ms", "max-ms", "max ms", "growth-MB", "growth, MB")}}},
	{ID: "D4", Title: "Reads beside writes", Question: "How many reads a second fit beside 6,000 rows a second of writes?",
		Views: []View{{Title: "SQLite and Postgres, smaller sizes", Filter: "experiment:D4 -/scale:1", Rows: "/engine /scale@num /rate@num /qps@num", Columns: named("", "rows/s", "rows/s", "qps", "reads/s", "p99-ms", "commit p99, ms", "read-p99-ms", "read p99, ms", "late", "late", "skipped", "skipped")}}},
	{ID: "D5", Title: "Growth", Question: "How do commits and reads slow down as the database grows?",
		Views: []View{{Filter: "experiment:D5", Rows: "/engine /layout /scale@num", Columns: named("", "p50-ms", "commit p50, ms", "max-ms", "max, ms", "late", "late", "wal-MB", "WAL, MB", "qps-A", "reads/s, A", "qps-C", "reads/s, C", "qps-W", "reads/s, W", "data-MB", "data, MB")}}},
	{ID: "E1", Title: "Data-centre reads", Question: "How fast are the scheduler's questions, every answer checked?",
		Views: []View{{Filter: "experiment:E1", Rows: "/scale@num /clients@num", Columns: engines("qps", "p99-ms")}}},
	{ID: "E2", Title: "Data-centre writes", Question: "What do the updates of a data centre cost, alone and mixed with the base profile?",
		Views: []View{{Title: "dc is the part of updates, in percent", Filter: "experiment:E2", Rows: "/scale@num /dc@num", Columns: engines("rows/s", "p99-ms")}}},
	{ID: "E3", Title: "Data-centre reads beside writes", Question: "Are answers still right, and how fast, while nodes and workloads change?",
		Views: []View{{Filter: "experiment:E3", Rows: "/engine /scale@num /qps@num", Columns: named("", "rows/s", "rows/s", "qps", "reads/s", "p99-ms", "commit p99, ms", "late", "late", "skipped", "skipped")}}},
	{ID: "F1", Title: "Appends", Question: "What do appends of 1 to 1,000 events cost?",
		Found: "go-crablet on Postgres with 35 events: 1.12, 1.47, 3.54 and 24.44 ms of 1, 10, 100 and 1,000; with 61,000 its 1,000 take 390 ms",
		Views: []View{{Filter: "experiment:F1 /layout:tags", Rows: "/profile@(tiny small 1000000 10000000) /batch@num", Columns: engines("ev/s")}}},
	{ID: "F2", Title: "Appends of several clients", Question: "How many appends a second do clients make together?",
		Found: "go-crablet with 61,000 events: 2,485, 3,535, 11,631 and 16,606 events/s of 1, 5, 10 and 20 clients, 100 events an append",
		Views: []View{{Filter: "experiment:F2 .name:EventAppendConcurrent /layout:tags", Rows: "/profile@(tiny small 1000000 10000000) /clients@num", Columns: engines("ev/s")}}},
	{ID: "F3", Title: "Conditional appends", Question: "How many appends a second does a store judge and take, each on the condition that a tag is new?",
		Views: []View{{Filter: "experiment:F3 /layout:tags", Rows: "/profile@(tiny small 1000000 10000000) /clients@num", Columns: engines("op/s")}}},
	{ID: "F4", Title: "Decisions", Question: "What does a decision cost: a projection, and the append that it guards?",
		Views: []View{{Filter: "experiment:F4 /layout:tags /items:/^$/", Rows: "/profile@(tiny small 1000000 10000000) /clients@num", Columns: engines("op/s")}}},
	{ID: "F5", Title: "Queries for events", Question: "How long do queries take, read to their ends?",
		Found: "go-crablet with 61,000 events: course by id 1.84 ms, courses by category 2.06, course or student 4.59, enrolments by grade 1.41",
		Views: []View{{Filter: "experiment:F5 /layout:tags /profile:(small OR 1000000)", Rows: "/profile@(tiny small 1000000 10000000) /query@alpha", Columns: engines("p50-ms")}}},
	{ID: "F6", Title: "Memory of a read", Question: "By how much does memory grow while everything is read?",
		Views: []View{{Filter: "experiment:F6 /layout:tags", Rows: "/profile@(tiny small 1000000 10000000)", Columns: engines("rss-MB")}}},
	{ID: "F7", Title: "Subscription", Question: "How long does it take to replay the events of one student?",
		Found: "go-crablet: 0.51 ms with 35 events, 2.17 with 61,000",
		Views: []View{{Filter: "experiment:F7 /layout:tags", Rows: "/profile@(tiny small 1000000 10000000)", Columns: engines("p50-ms")}}},
	{ID: "F8", Title: "Projections", Question: "How long does a pass of one and of five projections take?",
		Found: "go-crablet: 0.42 and 0.51 ms with 35 events, 1.18 and 2.34 with 61,000",
		Views: []View{{Filter: "experiment:F8 /layout:tags", Rows: "/profile@(tiny small 1000000 10000000) /projectors@num", Columns: engines("p50-ms")}}},
	{ID: "G1", Title: "Permissions", Question: "How fast are permission checks and listings through organizations, groups in groups and access lists?",
		Found: "one client, p95: SpiceDB on Postgres 2.4 to 4.9 ms a check and 19 to 76 ms a listing, Postgres 17 1.0 to 7.9 and 1.0 to 3.0; ingest 3.6 to 54 s",
		Views: []View{
			{Filter: "experiment:G1 /profile:full /closure:materialised /clients:1", Rows: "/op@alpha", Columns: engines("p95-ms")},
			{Title: "loading", Filter: "experiment:G1 .name:RebacIngest", Rows: "/profile", Columns: engines("ingest-s")},
		}},
	{ID: "G2", Title: "Social graph", Question: "Which rates of permission checks with 1 % writes are carried within AuthZed's service levels?",
		Found: "AuthZed at 10M relationships: 1,000 a second with check p95 19.7 ms on 48 vCPU, 10,000 with 16.3 ms on 84",
		Views: []View{{Filter: "experiment:G2 .name:Social", Rows: "/relationships@num /qps@num", Columns: engines("check-p95-ms", "write-p95-ms")}}},
	{ID: "H1", Title: "Entity service", Question: "What does a client of the service get over REST and over gRPC, payloads sealed, and how much of that is the protocol?",
		Found: "REST put about 1 ms, get 1 ms warm and 3 to 5 cold; gRPC put 0.6, get 0.3; 32 clients 910 puts and 970 gets a second",
		Views: []View{
			{Title: "one client", Filter: "experiment:H1 .name:Service /clients:1", Rows: "/protocol@alpha /op@alpha", Columns: engines("p50-ms")},
			{Title: "32 clients", Filter: "experiment:H1 .name:Service /clients:32", Rows: "/protocol@alpha /op@alpha", Columns: engines("op/s")},
		}},
	{ID: "H3", Title: "Arkiv node", Question: "What do the network's SDKs get of a node that follows a chain at 6,000 rows a second?",
		Found: "asked: by key 15,000 and mix A 4,000 calls a second, 32 clients, layout compact, 800,000 entities",
		Views: []View{{Filter: "experiment:H3", Largest: "scale", Rows: "/engine /protocol@alpha /op@alpha /loop", Columns: named("", "qps", "calls/s", "p50-ms", "p50 ms", "p99-ms", "p99 ms", "follow-p99-ms", "block p99, ms")}}},
	{ID: "I3", Title: "Reads beside writes, the curve", Question: "How many reads a second do ten clients get beside 0 to 50,000 rows a second of writes?",
		Views: []View{{Filter: "experiment:I3", Rows: "/engine /layout /scale@num /mix@alpha /rate@num",
			Columns: named("", "rows/s", "rows/s", "qps", "reads/s", "p50-ms", "commit p50, ms", "p99-ms", "p99 ms", "max-ms", "max ms", "read-p50-ms", "read p50, ms", "read-p99-ms", "p99 ms", "commit-late", "late", "commit-skipped", "skipped")}},
		Sketches: []Sketch{{Title: "Reads beside writes", Kind: Frontier, Filter: "experiment:I3", Series: []string{"engine", "layout", "scale"}}}},
	{ID: "I5", Title: "The loads of a first version", Question: "Does a store of 621,000 entities take 10,000 to 50,000 rows a second with 1,000 to 10,000 reads a second?",
		Views: []View{{Filter: "experiment:I5", Largest: "scale", Rows: "/engine /layout /rate@num /qps@num",
			Columns: named("", "rows/s", "rows/s", "qps", "reads/s", "p50-ms", "commit p50, ms", "p99-ms", "p99 ms", "max-ms", "max ms", "read-p50-ms", "read p50, ms", "read-p99-ms", "p99 ms", "commit-skipped", "commits skipped", "skipped", "reads skipped")}}},
	{ID: "J1", Title: "First sync", Question: "How long does a new store take to get to the head, from a block tar and from a chain by JSON-RPC?",
		Views: []View{synced("experiment:J1")}},
	{ID: "J2", Title: "Import", Question: "How long does the import of a database of Arkiv's sqlite-store take?",
		Views: []View{synced("experiment:J2")}},
	{ID: "J3", Title: "Backup, restore and check", Question: "How long do a backup beside 6,000 rows a second of writes, its restoration and a check take, and what do commits feel of the backup?",
		Views: []View{{Filter: "experiment:J3", Rows: "/engine /layout /scale@num", Columns: named("", "data-MB", "data, MB", "backup-MB", "backup, MB", "backup-s", "backup, s", "restore-s", "restore, s", "check-s", "check, s", "rows/s", "rows/s meanwhile", "p50-ms", "commit p50, ms", "p99-ms", "p99 ms", "max-ms", "max ms")}}},
	{ID: "J4", Title: "Restart", Question: "How soon after a clean stop and after a kill are reads at their full rate again?",
		Views: []View{{Filter: "experiment:J4", Rows: "/engine /layout /scale@num /after@(stop kill)", Columns: named("", "open-ms", "opened, ms", "first-read-ms", "first read, ms", "first-second-qps", "reads in the first second", "warm-qps", "warm reads/s", "full-rate-s", "full rate after, s")}}},
	{ID: "J5", Title: "Growth a day", Question: "By how much does a database grow in a day at 6,000 rows a second?",
		Views: []View{{Filter: "experiment:J5", Rows: "/engine /layout /scale@num", Columns: named("", "B/row", "bytes a row", "GB/day", "GB a day", "data-MB", "data before, MB", "after-MB", "after, MB")}}},
	{ID: "M1", Title: "The machine", Question: "Is the machine the same all the time, and nobody else on it?",
		Views: []View{{Filter: "experiment:M1", Rows: "host kernel", Columns: named("", "fsync-p50-ms", "fsync p50, ms", "fsync-p99-ms", "fsync p99, ms", "copy-MB/s", "copy, MB/s", "work-ms", "fixed program, ms", "share-others", "others' part of the cores")}}},
	{ID: "Q1", Title: "First look", Question: "In some minutes: how do the engines and the two layouts do on the same blocks?",
		Views: []View{firstLook("blocks of 100 entities, ms", ".name:GeneratedBlocks"), firstLook("blocks of your own, ms", "/profile:/^own-/")}},
	{ID: "Q2", Title: "One operation at a time", Question: "What do one commit, one update and one read by key cost?",
		Views: []View{{Filter: "experiment:Q2", Rows: ".name /layout", Columns: engines("p50-ms", "p99-ms")}}},
	{ID: "Q3", Title: "One query at a time", Question: "What does each query of a fixed set cost, read to its end?",
		Views: []View{{Filter: "experiment:Q3", Rows: "/layout /query", Columns: engines("p50-ms")}}},
}

// firstLook is what a newcomer sees of engines and layouts that were given the same blocks.
func firstLook(title, filter string) View {
	return View{Title: title, Filter: "experiment:Q1 " + filter, Rows: "/engine /layout@alpha", Ranked: true,
		Columns: named("", "commit-p50-ms", "commit", "commit-p99-ms", "its p99", "get-p50-ms", "get", "query-p50-ms", "query", "load-s", "load, s", "B/ent", "B/entity")}
}

// synced is how a store came to hold what another source has.
func synced(filter string) View {
	return View{Filter: filter, Rows: "/engine /layout /scale@num /source@alpha",
		Columns: named("", "sync-s", "seconds", "rows/s", "rows/s", "data-MB", "data, MB", "B/row", "bytes a row")}
}

// overview is all that was measured of an experiment: a row for each setting that differs.
func (s *Set) overview(id string) Spec {
	view := View{Filter: "experiment:" + id, Rows: ".name /engine"}
	has, first := make(map[string]bool), make(map[string]string)
	for _, l := range s.Lines {
		if l.GetConfig("experiment") != id || Key(l, "kind") != "" {
			continue
		}
		for _, v := range l.Values {
			has[v.Unit] = true
		}
		for _, pair := range nameKeys(l) {
			row := " /" + pair[0] + "@num"
			if first[pair[0]] == "" {
				first[pair[0]] = pair[1]
			} else if pair[0] != "engine" && pair[1] != first[pair[0]] && !strings.Contains(view.Rows, row) {
				view.Rows += row
			}
		}
	}
	for _, unit := range overviewUnits {
		if has[unit] {
			view.Columns = append(view.Columns, Column{Unit: unit})
		}
	}
	return Spec{ID: id, Title: id, Views: []View{view}}
}

// overviewUnits are those that people ask for first.
var overviewUnits = []string{
	"rows/s", "rel/s", "ev/s", "op/s", "qps", "p50-ms", "p95-ms", "p99-ms", "check-p95-ms", "write-p95-ms",
	"share-success", "levels-missed", "late", "skipped", "ingest-s", "closure-s", "load-s", "data-MB",
}

// HowToRead explains what stands in tables.
var HowToRead = []string{
	"A figure is the median of n measurements. In brackets is the 95 % interval of order statistics, from six measurements on; below that it is the range. Nothing is judged below n=3.",
	"K, M and G are thousands, millions and thousand millions. “–” was not measured in that setting.",
	"† marks a figure with a measurement that was made while the machine was not as before.",
	"× 2 and ÷ 2 compare two settings by their medians; p is of the Mann-Whitney test, and “~” stands before what it does not tell apart.",
	"Scale 1 is 800,000 entities in 20 million rows. Layout, durability and other settings that a table has in common stand below it, with the number of sittings: what is of several sittings may be of several machines or hours.",
	"Latencies count from the moment an operation was due where a rate was asked for. late counts what began after it was due, skipped what had not begun at the end.",
	"Columns of other programs are published figures, or those of peers.txt; they are of other machines unless it says otherwise.",
}
