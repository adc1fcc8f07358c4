package report

import (
	"strings"

	"github.com/varvedb/varve/internal/catalogue"
)

// Spec is an experiment of the catalogue with the tables that answer it.
type Spec struct {
	catalogue.Entry
	Views    []View   `json:"-"`
	Sketches []Sketch `json:"-"`
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

// specs are the experiments of the catalogue with their tables.
var specs = func() (list []Spec) {
	for _, e := range catalogue.All {
		spec := Spec{Entry: e, Views: views[e.ID]}
		for i := range spec.Views {
			spec.Views[i].Filter = strings.TrimSpace("experiment:" + e.ID + " " + spec.Views[i].Filter)
		}
		list = append(list, spec)
	}
	return list
}()

// events are the rows of each number of events in the store.
const events = "/profile@(tiny small 1000000 10000000)"

// views are the tables of each experiment, whose filters are of its lines.
var views = map[string][]View{
	"A1": {{Largest: "rows", Rows: "/indexes@num /mode@alpha", Columns: engines("rows/s"), Compare: &Compare{"indexes", "0", []string{"2", "6"}, "rows/s"}}},
	"A2": {{Largest: "rows", Rows: "/indexes@num", Columns: engines("rows/s"), Compare: &Compare{"indexes", "0", []string{"2", "6"}, "rows/s"}}},
	"A3": {{Largest: "rows", Rows: "/indexes@num /mode@alpha", Columns: engines("rows/s"), Compare: &Compare{"indexes", "0", []string{"2", "6"}, "rows/s"}}},
	"A4": {{Largest: "rows", Rows: "/mode@alpha", Columns: engines("rows/s"), Compare: &Compare{"mode", "bulk", []string{"single", "batch"}, "rows/s"}}},
	"A5": {{Rows: "/profile@alpha /entities@num", Columns: engines("ent/s")}},
	"A6": {{Rows: "/profile@alpha /entities@num", Columns: engines("ent/s")}},
	"A7": {{Title: "memory as a multiple of the data", Largest: "entities", Rows: "/memory@num", Columns: engines("ent/s")}},
	"A8": {
		{Filter: ".name:Block", Rows: "/profile /engine /layout /blocks@num", Fit: true},
		{Title: "correlations", Filter: "/profile:/^(mendoza$|own-)/", Rows: "/engine /layout /blocks@num",
			Columns: named("", "r-entities", "entities", "r-attributes", "attributes", "r-strings", "strings", "r-numbers", "numbers", "r-payload-each", "mean payload")},
		{Title: "partial correlations, blocks whose parts vary independently", Filter: "/profile:independent", Rows: "/engine /layout /blocks@num",
			Columns: named("", "partial-entities", "entities", "partial-strings", "strings", "partial-numbers", "numbers", "partial-payload_bytes", "payload")},
	},
	"A11": {{Largest: "entities", Rows: ablation, Columns: engines("ent/s")}},
	"A12": {{Largest: "scale", Rows: ablation, Columns: []Column{{Unit: "qps", Name: "reads/s", Across: "mix"}}}},
	"A13": {{Largest: "entities", Rows: "/durability@alpha /store@alpha", Columns: engines("ent/s")}},
	"A14": {{Filter: ".name:Block", Largest: "entities", Rows: "/layout /engine", Fit: true}},
	"A15": {{Rows: "/engine /content@alpha /bytes@num /kept@(row table zstd file)",
		Columns: named("", "ent/s", "entities/s", "p50-ms", "commit p50, ms", "p99-ms", "p99 ms", "B/ent", "bytes an entity", "read-p50-ms", "read p50, ms", "read-p99-ms", "p99 ms")}},
	"A16": {{Rows: "/engine /layout /cap@num", Columns: named("", "rows/s", "rows/s", "p50-ms", "p50 ms", "p99-ms", "p99 ms", "max-ms", "max ms")}},
	"A17": {
		{Title: "memory as a multiple of the data", Largest: "scale", Rows: "/engine /layout /memory@num /page@num",
			Columns: named("", "load-rows/s", "loading, rows/s", "p50-ms", "commit p50, ms", "p99-ms", "p99 ms", "wal-MB", "WAL, MB", "data-MB", "data, MB", "qps-A", "reads/s, A", "disk-reads/s-A", "pages read from the disk/s")},
	},
	"B1": {{Rows: "/scale@num", Columns: engines("rows/s", "data-MB")}},
	"C1": {{Filter: "/layout:compact", Largest: "scale", Rows: "/engine /mix@alpha /clients@num", Columns: named("", "qps", "reads/s", "p50-ms", "p50 ms", "p95-ms", "p95 ms", "p99-ms", "p99 ms")}},
	"C2": {{Largest: "scale", Rows: "/engine /mix@alpha /loop@(open-100 open-1000 open-5000 open-10000)", Columns: named("", "qps", "reads/s", "p50-ms", "p50 ms", "p99-ms", "p99 ms", "late", "late", "skipped", "skipped")}},
	"C3": {{Largest: "scale", Rows: "/engine /mix@alpha /temperature@(cold lukewarm warm)", Columns: named("", "qps", "reads/s", "p99-ms", "p99 ms", "resident-before", "part resident before", "resident-after", "after")}},
	"C4": {{Title: "memory in GiB", Rows: "/engine /layout /mix@alpha /scale@num /clients@num /memory@num", Columns: named("", "qps", "reads/s", "p50-ms", "p50 ms", "p99-ms", "p99 ms", "disk-reads/s", "pages read from the disk/s")}},
	"D1": {{Largest: "scale", Rows: "/engine /layout /rate@alpha", Columns: named("", "rows/s", "rows/s", "settled-rows/s", "with merging done", "p50-ms", "p50 ms", "p99-ms", "p99 ms", "max-ms", "max ms", "late", "late", "wal-MB", "WAL, MB")}},
	"D2": {{Largest: "scale", Rows: "/engine /policy@alpha /frames@num", Columns: named("", "rows/s", "rows/s", "wal-MB", "WAL, MB", "p99-ms", "p99 ms", "max-ms", "max ms")}},
	"D3": {{Largest: "scale", Rows: "/engine /for@alpha", Columns: named("", "p50-ms", "p50 ms", "p99-ms", "p99 ms", "max-ms", "max ms", "growth-MB", "growth, MB")}},
	"D4": {{Title: "SQLite and Postgres, smaller sizes", Filter: "-/scale:1", Rows: "/engine /scale@num /rate@num /qps@num", Columns: named("", "rows/s", "rows/s", "qps", "reads/s", "p99-ms", "commit p99, ms", "read-p99-ms", "read p99, ms", "late", "late", "skipped", "skipped")}},
	"D5": {{Rows: "/engine /layout /scale@num", Columns: named("", "p50-ms", "commit p50, ms", "max-ms", "max, ms", "late", "late", "wal-MB", "WAL, MB", "qps-A", "reads/s, A", "qps-C", "reads/s, C", "qps-W", "reads/s, W", "data-MB", "data, MB")}},
	"E1": {{Rows: "/scale@num /clients@num", Columns: engines("qps", "p99-ms")}},
	"E2": {{Title: "dc is the part of updates, in percent", Rows: "/scale@num /dc@num", Columns: engines("rows/s", "p99-ms")}},
	"E3": {{Rows: "/engine /layout /scale@num /rate@num /qps@num", Columns: asked}},
	"F1": {{Filter: "/layout:tags", Rows: events + " /batch@num", Columns: engines("ev/s")}},
	"F2": {{Filter: ".name:EventAppendConcurrent /layout:tags", Rows: events + " /clients@num", Columns: engines("ev/s")}},
	"F3": {{Filter: "/layout:tags", Rows: events + " /clients@num", Columns: engines("op/s")}},
	"F4": {{Filter: "/layout:tags /items:/^$/", Rows: events + " /clients@num", Columns: engines("op/s")}},
	"F5": {{Filter: "/layout:tags /profile:(small OR 1000000)", Rows: events + " /query@alpha", Columns: engines("p50-ms")}},
	"F6": {{Filter: "/layout:tags", Rows: events, Columns: engines("rss-MB")}},
	"F7": {{Filter: "/layout:tags", Rows: events, Columns: engines("p50-ms")}},
	"F8": {{Filter: "/layout:tags", Rows: events + " /projectors@num", Columns: engines("p50-ms")}},
	"G1": {
		{Filter: "/profile:full /closure:materialised /clients:1", Rows: "/op@alpha", Columns: engines("p95-ms")},
		{Title: "loading", Filter: ".name:RebacIngest", Rows: "/profile", Columns: engines("ingest-s")},
	},
	"G2": {{Filter: ".name:Social", Rows: "/relationships@num /qps@num", Columns: engines("check-p95-ms", "write-p95-ms")}},
	"H1": {
		{Title: "one client", Filter: ".name:Service /clients:1", Rows: "/protocol@alpha /op@alpha", Columns: engines("p50-ms")},
		{Title: "32 clients", Filter: ".name:Service /clients:32", Rows: "/protocol@alpha /op@alpha", Columns: engines("op/s")},
	},
	"H3": {{Largest: "scale", Rows: "/engine /protocol@alpha /op@alpha /loop", Columns: named("", "qps", "calls/s", "p50-ms", "p50 ms", "p99-ms", "p99 ms", "follow-p99-ms", "block p99, ms")}},
	"I3": {{Rows: "/engine /layout /scale@num /mix@alpha /rate@num",
		Columns: named("", "rows/s", "rows/s", "qps", "reads/s", "p50-ms", "commit p50, ms", "p99-ms", "p99 ms", "max-ms", "max ms", "read-p50-ms", "read p50, ms", "read-p99-ms", "p99 ms", "commit-late", "late", "commit-skipped", "skipped")}},
	"I5": {{Largest: "scale", Rows: "/engine /layout /rate@num /qps@num", Columns: asked}},
	"J1": {synced},
	"J2": {synced},
	"J3": {{Rows: "/engine /layout /scale@num", Columns: named("", "data-MB", "data, MB", "backup-MB", "backup, MB", "backup-s", "backup, s", "restore-s", "restore, s", "check-s", "check, s", "rows/s", "rows/s meanwhile", "p50-ms", "commit p50, ms", "p99-ms", "p99 ms", "max-ms", "max ms")}},
	"J4": {{Rows: "/engine /layout /scale@num /after@(stop kill)", Columns: named("", "open-ms", "opened, ms", "first-read-ms", "first read, ms", "first-second-qps", "reads in the first second", "warm-qps", "warm reads/s", "full-rate-s", "full rate after, s")}},
	"J5": {{Rows: "/engine /layout /scale@num", Columns: named("", "B/row", "bytes a row", "GB/day", "GB a day", "data-MB", "data before, MB", "after-MB", "after, MB")}},
	"M1": {{Rows: "host kernel", Columns: named("", "fsync-p50-ms", "fsync p50, ms", "fsync-p99-ms", "fsync p99, ms", "copy-MB/s", "copy, MB/s", "work-ms", "fixed program, ms", "share-others", "others' part of the cores")}},
	"Q1": {firstLook("blocks of 100 entities, ms", "-/profile:/^own-/"), firstLook("blocks of your own, ms", "/profile:/^own-/")},
	"Q2": {{Rows: ".name /layout", Columns: engines("p50-ms", "p99-ms")}},
	"Q3": {{Rows: "/layout /query", Columns: engines("p50-ms")}},
}

// asked are writes and reads that are both due at their times: delivered, late
// and given up of each, and how long they took.
var asked = named("", "rows/s", "rows/s", "commit-late", "commits late", "commit-skipped", "given up", "p50-ms", "commit p50, ms", "p99-ms", "p99 ms", "max-ms", "max ms",
	"qps", "reads/s", "late", "reads late", "skipped", "given up", "read-p50-ms", "read p50, ms", "read-p99-ms", "p99 ms")

// firstLook is what a newcomer sees of engines and layouts that were given the same blocks.
func firstLook(title, filter string) View {
	return View{Title: title, Filter: filter, Rows: "/engine /layout@alpha", Ranked: true,
		Columns: named("", "commit-p50-ms", "commit", "commit-p99-ms", "its p99", "get-p50-ms", "get", "query-p50-ms", "query", "load-s", "load, s", "B/ent", "B/entity")}
}

// synced is how a store came to hold what another source has.
var synced = View{Rows: "/engine /layout /scale@num /source@alpha",
	Columns: named("", "sync-s", "seconds", "rows/s", "rows/s", "data-MB", "data, MB", "B/row", "bytes a row")}

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
