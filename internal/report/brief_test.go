package report_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/rebac"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report"
)

// brief is what a document says of an experiment.
func brief(t *testing.T, id string, records ...result.Record) string {
	t.Helper()
	text, err := report.RenderMarkdown(fmt.Sprintf("<!-- table:%s -->\n<!-- /table:%[1]s -->", id), input(records...))
	require.NoError(t, err)
	return text
}

// inserts are rows a second with no, 2 and 6 indexes on an engine, in three blocks that
// are a little faster each, and a pair that says that measurements are noise apart.
func inserts(engine string, noise, none, two, six float64) (records []result.Record) {
	for indexes, v := range map[int]float64{0: none, 2: two, 6: six} {
		for repeat := range 3 {
			config := fmt.Sprintf("engine=%s mode=single rows=1000000 indexes=%d", engine, indexes)
			of := result.Metric{Value: v * (1 + float64(repeat)/10), Unit: "rows/s"}
			records = append(records, record("A1", config, repeat, of))
			of.Value *= noise
			records = append(records, record("A1", config+" aa=2", repeat, of))
		}
	}
	return records
}

// The documents agree where their factor is inside the interval of ours, widened by the
// noise: 2.96 and 6.23 with 2 and 6 indexes. They are compared within a block.
func TestDocuments(t *testing.T) {
	agreeing, contrary := inserts("sqlite", 1.1, 300, 100, 50), inserts("duckdb", 1.1, 300, 290, 280)
	for _, tt := range []struct {
		name    string
		records []result.Record
		want    string
	}{
		{"agree", agreeing, "**Agrees** with the documents in all 2 factors."},
		{"contradict", contrary, "**Contradicts** the documents in all 2 factors."},
		{"both", append(agreeing, contrary...), "**Depends on the engine**: the documents' factors agree in 2 of 4 (sqlite: 2 of 2; duckdb: 0 of 2)."},
		{"one factor", inserts("sqlite", 1.1, 300, 100, 100), "**Depends on the setting**: the documents' factors agree in 1 of 2 (0 → 2: 1 of 1; 0 → 6: 0 of 1)."},
		{"noise for both", inserts("sqlite", 2.9, 300, 200, 100), "1 are open for the noise."},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Contains(t, brief(t, "A1", tt.records...), tt.want) })
	}
	text := brief(t, "A1", agreeing...)
	require.Contains(t, text, "| 0 | 1.47M | 330 (300–360) |")
	require.Contains(t, text, "| 0 → 6 | 6.23× | 6× |", "blocks drift, their factors do not")
	require.NotContains(t, text, "Not at the documents' size")
}

// What is smaller than the documents' own data says so.
func TestReached(t *testing.T) {
	text := brief(t, "A5", record("A5", "engine=sqlite layout=arkiv profile=typical entities=4000", 0, rate(1)))
	require.Contains(t, text, "**Not at the documents' size**, but at 4 % of it (entities 4,000 of 100,000).")
	require.Contains(t, text, "`varve run A5 --scale 0.04 --blocks 1`")
	p95 := result.Metric{Value: 1, Unit: "p95-ms"}
	require.Contains(t, brief(t, "G1", record("G1", "engine=sqlite profile=tiny op=check", 0, p95)), "**Not at the documents' size** (profile full), but at tiny.")
	require.NotContains(t, brief(t, "G1", record("G1", "engine=sqlite profile=full op=check", 0, p95)), "Not at")
}

// Three sizes have a row that says how a figure grows.
func TestGrowth(t *testing.T) {
	var records []result.Record
	for _, layout := range []string{"arkiv", "compact"} {
		for i, scale := range []string{"1", "10", "2", "5"} {
			v, _ := strconv.ParseFloat(scale, 64)
			if layout == "arkiv" || i < 2 {
				records = append(records, record("B1", "engine=sqlite layout="+layout+" scale="+scale, 0, result.Metric{Value: 10 * v * v, Unit: "data-MB"}))
			}
		}
	}
	text := brief(t, "B1", records...)
	require.Contains(t, text, "| arkiv | 5 | data-MB | 67K | 250 |\n| arkiv | 10 | data-MB | 133K | 1,000 |\n| arkiv | growth | data-MB | – | size^2.00 (2.00 to 2.00) |\n")
	require.NotContains(t, text, "| compact | growth")
	require.Contains(t, text, "--sizes 1,2,5,10")
	require.Contains(t, brief(t, "coverage", records...), "With a trend over three sizes or more: B1.")
}

// What is smaller than the documents' data shows its largest size, and how that grows.
func TestLargest(t *testing.T) {
	var records []result.Record
	for _, entities := range []string{"500", "1500", "15000"} {
		n, _ := strconv.ParseFloat(entities, 64)
		for memory, v := range map[string]float64{"0.1": 15e5 / n, "1.5": 15e6 / n} {
			records = append(records, record("A7", "engine=sqlite layout=arkiv profile=memory memory="+memory+" entities="+entities, 0, rate(v)))
		}
	}
	text := brief(t, "A7", records...)
	require.Contains(t, text, "profile memory, entities 15,000.")
	require.Contains(t, text, "| 0.1 | 100 (size^-1.00, -1.00 to -1.00) |\n")
	require.Contains(t, text, "| 0.1 → 1.5 | 10× |\n")
	require.Contains(t, text, "but at 30 % of it")
	require.Contains(t, text, "--scale 0.3 ")
	require.Contains(t, brief(t, "coverage", records...), "With a trend over three sizes or more: A7.")
}

// Where profiles are sizes the documents' own has the row, and what grows is told from all.
func TestSizeOfTheDocuments(t *testing.T) {
	var records []result.Record
	for _, name := range []string{"small", "full", "fullx4"} {
		size, err := rebac.ParseSize(name)
		require.NoError(t, err)
		records = append(records, record("G1", "engine=sqlite layout=rebac profile="+name+" op=list-view-regular closure=materialised clients=1", 0,
			result.Metric{Value: math.Sqrt(float64(size.Objects()) / float64(rebac.Full.Objects())), Unit: "p95-ms"}))
	}
	text := brief(t, "G1", records...)
	require.Contains(t, text, "profile full, op list-view-regular")
	require.Contains(t, text, "| all | 76 | 3 | 1 (size^0.50, 0.50 to 0.50) |\n")
	require.Contains(t, brief(t, "coverage", records...), "With a trend over three sizes or more: G1.")
}

// A growth that may as well be a fall is not told.
func TestVagueGrowth(t *testing.T) {
	figures := map[string]float64{"0.1": 100, "0.3": 10, "1": 90}
	var records []result.Record
	for scale, v := range figures {
		records = append(records, record("B1", "engine=sqlite layout=compact profile=mendoza scale="+scale, 0, result.Metric{Value: v, Unit: "rows/s"}))
	}
	text := brief(t, "B1", records...)
	require.Contains(t, text, "| 1 | rows/s | 90 |")
	require.NotContains(t, text, "growth")
}

// AuthZed's service levels are kept or not at the size that it has, whatever else was measured.
func TestServiceLevelsAtTheirSize(t *testing.T) {
	var records []result.Record
	for relationships, p95 := range map[string]float64{"1000000": 200, "10000000": 1, "100000000": 200} {
		records = append(records, record("G2", "engine=sqlite layout=social relationships="+relationships+" script=authzed qps=1000", 0,
			result.Metric{Value: 1000, Unit: "qps"}, result.Metric{Value: 1, Unit: "share-success"},
			result.Metric{Value: p95, Unit: "check-p95-ms"}, result.Metric{Value: 1, Unit: "write-p95-ms"}))
	}
	require.Contains(t, brief(t, "G2", records...), "are kept by sqlite up to 1000 checks a second")
}

// Each index has a line with what it costs, or what reads gain of it, by mix.
func TestIndexByIndex(t *testing.T) {
	var writes, reads []result.Record
	for i, v := range []float64{900, 300, 290} {
		config := fmt.Sprintf("engine=sqlite layout=arkiv-%d", i)
		writes = append(writes, record("A11", config, 0, rate(v)))
		for mix, gain := range map[string]float64{"A": 1, "B": 10} {
			reads = append(reads, record("A12", config+" mix="+mix, 0, result.Metric{Value: 100 + v*gain*float64(i), Unit: "qps"}))
		}
	}
	text := brief(t, "A11", writes...)
	require.Contains(t, text, "| arkiv-0 | 900 |\n| arkiv-2 | 290 |\n| + 1: string_attributes_pk | 3× |\n")
	require.NotContains(t, text, "+ 2:")
	text = brief(t, "A12", reads...)
	require.Contains(t, text, "| + 1: string_attributes_pk | – | A 4×, B 31× |\n")
	require.Contains(t, text, "Steps inside the noise are left out.")
	require.NotContains(t, text, "+ 2:")
}

// What others did stands beside an engine's best of what it could be beside, with how it
// was done.
func TestPeersBeside(t *testing.T) {
	appends := func(layout string, v float64) result.Record {
		return record("F2", "engine=sqlite layout="+layout+" profile=small clients=20", 0, result.Metric{Value: v, Unit: "op/s"})
	}
	in := input(appends("tags", 31_000), appends("gin", 9000))
	peers, err := result.ReadPeers(strings.NewReader(`experiment: F2
peer: UmaDB 0.7.8
server: gRPC over loopback
date: 2026-11-23
BenchmarkPeer/peer=umadb/profile=small/clients=20 1000 3000 op/s
BenchmarkPeer/peer=umadb/profile=small/clients=20 1000 3400 op/s
BenchmarkPeer/peer=umadb/profile=1000000/clients=20 1000 2000 op/s
`), "peers.txt")
	require.NoError(t, err)
	in.Results.Peers = peers
	for _, name := range []string{"peers:F2", "peers:F"} {
		text, err := report.RenderMarkdown(fmt.Sprintf("<!-- table:%s -->\n<!-- /table:%[1]s -->", name), in)
		require.NoError(t, err)
		require.Contains(t, text, "| profile=small/clients=20 | op/s | 3,200 (3,000–3,400) | 31K |")
		require.Contains(t, text, "| profile=1000000/clients=20 | op/s | 2,000 | – |")
		require.Contains(t, text, "- umadb: UmaDB 0.7.8; gRPC over loopback; 2026-11-23.")
	}
	require.Contains(t, brief(t, "peers:F2", appends("tags", 1)), "No peer was measured")
}

// Looks at the machine are shown with their spread, and are no experiment.
func TestMachine(t *testing.T) {
	look := func(repeat int, ms float64, marks ...result.Mark) result.Record {
		r := record("M1", "machine=1", repeat, result.Metric{Value: ms, Unit: "fsync-p50-ms"}, result.Metric{Value: 128, Unit: "fsyncs"})
		r.Marks = marks
		return r
	}
	records := append(inserts("sqlite", 1.1, 3, 2, 1), look(0, 2), look(1, 3, result.Mark{Label: "after A1"}, result.Mark{Label: "off: others"}), look(2, 2.5))
	text := brief(t, "machine", records...)
	require.Contains(t, text, "| looks | 3 between measurements, 1 of them when it was not as before |\n| fsync | p50-ms 2.5 (2 to 3) |\n| noise floor |")
	require.Contains(t, text, "| noise floor | 1.1× (A1) for rows/s; a difference inside is not called one (≈) |")
	require.NotContains(t, brief(t, "coverage", records...), "M1")
	require.Contains(t, brief(t, "machine", inserts("sqlite", 1.1, 3, 2, 1)...), "| looks | none between measurements")
}

// The service levels are kept up to a rate when they are at all below it.
func TestServiceLevels(t *testing.T) {
	at := func(qps string, delivered, p95 float64) result.Record {
		return record("G2", "engine=sqlite relationships=100 script=authzed qps="+qps, 0, result.Metric{Value: delivered, Unit: "qps"},
			result.Metric{Value: p95, Unit: "check-p95-ms"}, result.Metric{Value: 1, Unit: "share-success"})
	}
	text := brief(t, "G2", at("100", 100, 3), at("1000", 990, 24), at("10000", 9990, 26), at("20000", 20_000, 3))
	require.Contains(t, text, "are kept by sqlite up to 1000 checks a second.")
	require.Contains(t, brief(t, "G2", at("100", 90, 3)), "sqlite at none")
}

// The ranking of a document has the best row of each engine and of each layout.
func TestShortRanking(t *testing.T) {
	var records []result.Record
	for factor, engine := range []string{"sqlite", "sqlitego", "duckdb"} {
		for _, r := range ranked(map[string]float64{"arkiv": 1, "simple": 1.1, "arkiv-pruned": 1.2, "compact": 500, "arkiv-ordered": 600}) {
			r.Config = r.Config.With("engine", engine)
			for i := range r.Metrics {
				r.Metrics[i].Value *= 1 + float64(factor)/100
			}
			records = append(records, r)
		}
	}
	text := brief(t, "ranking", records...)
	require.Equal(t, 12+2, strings.Count(text, "\n|"), "with head and rule")
	for _, want := range []string{"| sqlitego arkiv |", "| duckdb arkiv |", " compact |", " arkiv-ordered |", "3 more are on the page."} {
		require.Contains(t, text, want)
	}
}

// What was measured of more data, or for longer, stands in a row of its own; that an
// engine has another promise does not.
func TestRowsAreOfOneSize(t *testing.T) {
	of := func(engine, entities, durability string) result.Record {
		return record("A5", "engine="+engine+" layout=arkiv profile=typical durability="+durability+" entities="+entities, 0, rate(1))
	}
	text := brief(t, "A5", of("sqlite", "100000", "durable"), of("postgres", "4000", "durable"), of("duckdb", "4000", "relaxed"))
	require.Contains(t, text, "| 4000 | 714 | – | 1 | 1 |\n| 100,000 | 714 | 1 | – | – |\n")
	require.NotContains(t, text, "relaxed")
	text = brief(t, "A5", of("sqlite", "4000", "durable"), of("postgres", "4000", "durable"))
	require.Contains(t, text, "| all | 714 | 1 | 1 |")
}

// Records of little have tables of little.
func TestBriefOfLittle(t *testing.T) {
	require.Contains(t, brief(t, "A11", record("A11", "engine=sqlite layout=arkiv-3 entities=100000", 0, rate(7))), "layout arkiv-3, entities 100,000.")
	require.Contains(t, brief(t, "X1", record("X1", "machine=1 size=2", 0, rate(7))), "Not measured.")
}
