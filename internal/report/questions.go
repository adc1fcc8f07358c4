package report

import (
	"cmp"
	"fmt"
	"slices"
)

// Experiment is a question with the tables and pictures that answer it.
type Experiment struct {
	ID        string   `json:"-"` // section and number, such as "A5"
	Title     string   `json:"title"`
	Question  string   `json:"question"`
	Published string   `json:"-"` // what others measured, on their machines; "" for nothing
	Views     []View   `json:"-"`
	Sketches  []Sketch `json:"-"`
}

var (
	mostReads = Across("mix", "qps=reads/s", "p99-ms=p99 ms")
	writes    = []string{"rows/s", "commit-late=commits late", "commit-skipped=given up", "p99-ms=commit p99, ms", "max-ms=max, ms", "qps=reads/s"}
	closed    = Columns("", append(slices.Clone(writes), "read-p99-ms=read p99, ms")...)
	both      = Columns("", append(slices.Clone(writes), "late=reads late", "skipped=given up", "read-p99-ms=read p99, ms")...)
)

// glance is a table of the deciding figures at a scale, with a row for each
// engine and layout.
func (s *Set) glance(scale string) View {
	mix := func(experiment string) string {
		return " /mix:" + cmp.Or(MainMix(inNames(s.Lines.with("experiment", experiment), "mix")), "none")
	}
	return View{Title: "At a glance", Filter: fmt.Sprintf("/scale:%q", scale), Rows: "/engine /layout", Short: true, Columns: slices.Concat(
		Columns("experiment:D1 /rate:max", "settled-rows/s=most rows/s"),
		Columns("experiment:D1 /rate:6000", "p99-ms=99 % of commits, ms"),
		Columns("experiment:C1 /clients:10"+mix("C1"), "qps=most reads/s"),
		Columns("experiment:I3 /rate:6000"+mix("I3"), "qps=reads/s at 6,000 rows/s"),
	)}
}

// questions are the five questions of the lab. Results of the first campaign,
// measured by D4 and D5, come last.
var questions = []Experiment{
	{ID: "1", Title: "Most writes", Question: "How many rows a second does each engine and layout keep up, and how long do commits take meanwhile?",
		Views: []View{
			{Filter: "experiment:D1", Rows: "/engine /layout /scale@num",
				Columns: append(Columns("/rate:max", "settled-rows/s=most rows/s", "p50-ms=commit p50, ms", "p99-ms=p99, ms", "max-ms=max, ms"),
					Columns("/rate:6000", "rows/s=6,000 rows/s asked: rows/s", "late", "skipped=given up", "p99-ms=its p99, ms", "max-ms=its max, ms")...)},
			{Title: "6,000 rows/s asked (D5)", Filter: "experiment:D5 /scale:(1 OR 2 OR 5 OR 10)", Rows: "/engine /layout /scale@num",
				Columns: Columns("", "rows/s", "late", "skipped=given up", "p99-ms=commit p99, ms")},
		},
		Sketches: []Sketch{
			{Title: "Commit latency by quantile, 6,000 rows/s, 1x", Kind: Quantiles, Filter: "experiment:D1 /rate:6000 /scale:1", Series: []string{"engine", "layout"}},
			{Title: "Longest commit of each ten seconds, SQLite, 1x", Kind: TimeLine, Filter: "experiment:D1 .name:Timeline /engine:sqlite /rate:6000 /scale:1", Unit: "max-ms", Label: "longest commit, ms", Series: []string{"layout"}},
		}},
	{ID: "2", Title: "Most reads", Question: "How many reads a second does each answer, by mix of questions?",
		Views: []View{
			{Title: "After a warm-up of the same mix", Filter: "experiment:C1", Rows: "/engine /layout /scale@num /clients@num", Columns: mostReads},
			{Title: "One client, a store that grows (D5)", Filter: "experiment:D5 /scale:(1 OR 2 OR 5 OR 10)", Rows: "/engine /layout /scale@num",
				Columns: Columns("", "qps-A=reads/s, A", "qps-B=reads/s, B", "qps-C=reads/s, C", "p99-ms-A=p99 ms, A", "p99-ms-B=p99 ms, B", "p99-ms-C=p99 ms, C", "qps-W=reads/s, W", "p99-ms-W=p99 ms, W")},
		}},
	{ID: "3", Title: "The sweet spot of both", Question: "How many reads a second are answered while so many rows a second are written, and commits stay below 2 s and reads below 100 ms at p99?",
		Views: []View{
			{Title: "Ten readers while rows are written, rate as asked", Filter: "experiment:I3", Rows: "/engine /layout /scale@num /mix@alpha /rate@num", Columns: closed},
			{Title: "Reads at a rate (D4)", Filter: "experiment:D4", Largest: "scale", Rows: "/engine /layout /rate@num /qps@num", Columns: both},
		},
		Sketches: []Sketch{{Title: "Reads while rows are written", Kind: Frontier, Filter: "experiment:I3", Series: []string{"engine", "layout"}}}},
	{ID: "4", Title: "Degradation", Question: "How do writes and reads slow down as the database grows?",
		Views: []View{
			{Title: "most rows/s", Filter: "experiment:D1 /rate:max", Rows: "/engine /layout", Columns: Across("scale", "settled-rows/s=rows/s")},
			{Title: "commits at 6,000 rows/s asked", Filter: "experiment:D1 /rate:6000", Rows: "/engine /layout", Columns: Across("scale", "p99-ms=p99 ms", "max-ms=max ms")},
			{Title: "reads after a warm-up of the same mix", Filter: "experiment:C1", Rows: "/engine /layout /mix@alpha /clients@num", Columns: Across("scale", "qps=reads/s", "p99-ms=p99 ms")},
			{Title: "commits at 6,000 rows/s (D5)", Filter: "experiment:D5", Rows: "/engine /layout", Columns: Across("scale", "p99-ms=p99 ms")},
			{Title: "reads of mix B (D5)", Filter: "experiment:D5", Rows: "/engine /layout", Columns: Across("scale", "qps-B=reads/s")},
		},
		Sketches: []Sketch{
			{Title: "Rows a second over the size", Kind: Degradation, Filter: "experiment:D1 /rate:max", Unit: "settled-rows/s", Label: "rows/s", Series: []string{"engine", "layout"}},
			{Title: "Reads over the size, ten clients", Kind: Degradation, Filter: "experiment:C1 /clients:10", Unit: "qps", Label: "reads/s", Series: []string{"engine", "layout", "mix"}},
			{Title: "Time of 99 % of commits over the size", Kind: Degradation, Filter: "experiment:D5", Unit: "p99-ms", Label: "99 % of commits take at most, ms", Series: []string{"engine", "layout"}},
			{Title: "Reads of mix B over the size", Kind: Degradation, Filter: "experiment:D5", Unit: "qps-B", Label: "reads/s of mix B", Series: []string{"engine", "layout"}},
		}},
	{ID: "5", Title: "V1", Question: "Does a store of 621,000 entities take 10,000 to 50,000 rows a second with 1,000 to 10,000 reads a second?",
		Views: []View{
			{Title: "Nine loads, rate and qps as asked", Filter: "experiment:I5", Rows: "/engine /layout /scale@num /rate@num /qps@num", Columns: both},
			{Title: "V1 on compact, 800,000 entities (D4)", Filter: "experiment:D4 /layout:compact /scale:1 /rate:(10000 OR 25000 OR 50000) /qps:(1000 OR 5000 OR 10000)", Rows: "/engine /rate@num /qps@num", Columns: both},
		}},
}

// FirstVersion are the loads of a first version, in rows and reads a second, on
// 621,000 entities.
var FirstVersion = [][2]float64{
	{10_000, 1_000}, {10_000, 5_000}, {10_000, 10_000},
	{25_000, 1_000}, {25_000, 5_000}, {25_000, 10_000},
	{50_000, 1_000}, {50_000, 5_000}, {50_000, 10_000},
}
