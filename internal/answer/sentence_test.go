package answer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// repeated are four runs around each of the figures, with the units in a text:
// "%v rows/s %v p99-ms".
func repeated(experiment, name, text string, figures ...float64) lines {
	l := lines{experiment: experiment, name: name}
	for _, factor := range []float64{1, 0.98, 1.02, 1.01} {
		var values []any
		for _, f := range figures {
			values = append(values, f*factor)
		}
		l.values = append(l.values, fmt.Sprintf(text, values...))
	}
	return l
}

// measured has the results of varve answer for two layouts, the second half as
// good as the first, at two sizes, the second with nine tenths of the first.
func measured(profile string) (all []lines) {
	for i, layout := range []string{"compact", "arkiv"} {
		for j, scale := range []string{"1", "2"} {
			good := []float64{1, 0.5}[i] * []float64{1, 0.9}[j]
			if i == 1 && j == 1 {
				good = 0.3
			}
			at := func(name, more string) string {
				return name + "/engine=sqlite/layout=" + layout + "/profile=" + profile + "/durability=durable/scale=" + scale + more
			}
			all = append(all,
				repeated("D1", at("Sustained", "/rate=max"), "%v rows/s %v settled-rows/s %v p99-ms", 210_000*good, 200_000*good, 20/good),
				repeated("D1", at("Sustained", "/rate=6000"), "%v rows/s %v max-ms", 5_990, 10/good),
				repeated("C1", at("ReadMix", "/mix=W/clients=1/loop=closed"), "%v qps %v p99-ms", 5_000*good, 0.7/good),
				repeated("C1", at("ReadMix", "/mix=W/clients=10/loop=closed"), "%v qps %v p99-ms", 9_000*good, 3/good))
			if scale == "1" {
				continue
			}
			for _, rate := range []float64{2_000, 10_000, 50_000} {
				all = append(all, repeated("I3", at("Frontier", fmt.Sprintf("/rate=%v/mix=W", rate)), "%v rows/s %v p99-ms %v qps %v read-max-ms", rate*1.03, rate*good/25, 3_000*good, rate/1_000/good))
				all = append(all, repeated("I5", at("V1", fmt.Sprintf("/mix=W/rate=%v/qps=1000", rate)), "%v rows/s %v p99-ms %v qps %v read-p99-ms", rate*1.03, 20., 1_030., rate/200/good))
			}
		}
	}
	return all
}

func sentences(t *testing.T, all ...lines) (list []string) {
	t.Helper()
	for _, q := range evaluate(t, all...).Questions {
		list = append(list, q.Sentence)
	}
	return list
}

func TestSentences(t *testing.T) {
	require.Equal(t, []string{
		"In one sitting: At 2 times the source sqlite compact keeps up most writes: 181K rows/s (176K–184K), commit p99 22.3 ms (21.8–22.7); next is sqlite arkiv with 67 % fewer rows/s than sqlite compact, on this machine.",
		"In one sitting: At 2 times the source sqlite compact answers most reads of mix W with 10 clients: 8,140 reads/s (7,938–8,262), read p99 3.35 ms (3.27–3.4), and with one 4,522 reads/s (4,410–4,590), read p99 0.782 ms (0.762–0.793); next is sqlite arkiv with 67 % fewer reads/s than sqlite compact, on this machine.",
		"In one sitting: At 2 times the source sqlite compact carries most of both with commits below 2 s and reads below 100 ms at p99: asked for 50K rows/s it delivers 51.8K rows/s (50.5K–52.5K) with 2,714 reads/s (2,646–2,754), commit p99 1,809 ms (1,764–1,836), longest read 55.8 ms (54.4–56.7); nothing else carries that rate. sqlite arkiv carries 10K rows/s.",
		"In one sitting: From the size of the source to 2 times the source sqlite compact keeps most of its writes: 90 % of the rows/s; next is sqlite arkiv with 60 %, on this machine. Of its reads of mix W with 10 clients sqlite compact keeps most: 90 %; next is sqlite arkiv with 60 %, on this machine.",
		"In one sitting: At 2 times the source sqlite compact carries 1 of the 2 V1 loads that were asked of it, and none carries more; of the largest of them it delivers 10.4K rows/s (10.1K–10.5K) with 1,035 reads/s (1,009–1,051), commit p99 20.1 ms (19.6–20.4), read p99 55.8 ms (54.4–56.7). Of V1's nine loads 7 were not asked of it.",
	}, sentences(t, measured("own-node")...))
}

// Figures that were not measured three times are not judged, and a missing
// figure is named with the command that measures it.
func TestFewAndNone(t *testing.T) {
	few := measured("mendoza")
	for i := range few {
		few[i].values = few[i].values[:2]
	}
	for _, s := range sentences(t, few...) {
		require.Equal(t, "Cannot be judged: sqlite compact, sqlite arkiv (fewer than 3 runs). The tables have the figures; more --time repeats them.", s)
	}
	some := append(measured("mendoza"), repeated("D1", "Sustained/engine=sqlite/layout=compact/profile=mendoza/scale=4/rate=max", "%v settled-rows/s", 9_000))
	require.Contains(t, sentences(t, some...)[0], "At 1.6M entities of the base profile (scale 2) sqlite compact") // 4 has no other layout
	for i, id := range []string{"D1", "C1", "I3", "D1", "I5"} {
		require.Equal(t, "Not known: nothing was measured of it. varve answer measures it, and varve run "+id+" that alone.",
			sentences(t, lines{"A1", "Insert/engine=sqlite", []string{"1 rows/s"}})[i])
	}
}

// The rates of the curve are the requested ones, whichever they are.
func TestOwnRates(t *testing.T) {
	name := "Frontier/engine=sqlite/layout=compact/profile=mendoza/scale=1/mix=W/rate="
	text := "%v rows/s %v p99-ms %v qps %v read-p99-ms"
	got := sentences(t,
		repeated("I3", name+"0", text, 0, 1, 9_000, 2),
		repeated("I3", name+"30000", text, 31_000, 20, 4_000, 9),
		repeated("I3", strings.Replace(name, "sqlite", "libsql", 1)+"30000", text, 31_100, 20, 3_000, 9),
		repeated("I3", name+"7000", text, 7_300, 20, 5_000, 5),
		repeated("I3", name+"70000", text, 40_000, 3_000, 1_000, 300))[2]
	require.Regexp(t, "sqlite compact carries most of both with .* below 100 ms at p99: asked for 30K rows/s it delivers 31.2K rows/s.*; next is libsql compact with 25 % fewer reads/s than sqlite compact", got)
}

// Who was measured once is named and not ranked.
func TestNotRanked(t *testing.T) {
	once := lines{"D1", "Sustained/engine=libsql/layout=compact/profile=mendoza/scale=2/rate=max", []string{"999000 settled-rows/s"}}
	q := evaluate(t, append(measured("mendoza"), once)...).Questions[0]
	require.Regexp(t, "sqlite compact keeps up most writes.*; next is sqlite arkiv with ", q.Sentence)
	require.Equal(t, "libsql compact (fewer than 3 runs)", q.Unjudged)
}

// A loop that was not busy has no capacity to be ranked by.
func TestNotBusy(t *testing.T) {
	loop := func(engine string, rate, busy float64) lines {
		return repeated("D1", "Sustained/engine="+engine+"/layout=compact/profile=mendoza/scale=1/rate=max", "%v settled-rows/s %v busy", rate, busy)
	}
	q := evaluate(t, loop("sqlite", 100, 0.98), loop("libsql", 900, 0.9), loop("duckdb", 50, 0.98)).Questions[0]
	require.Regexp(t, "sqlite compact keeps up most writes.*; next is duckdb compact with 50 % fewer rows/s ", q.Sentence)
	require.Equal(t, "libsql compact (not busy)", q.Unjudged)
}

// Phases that end before the first checkpoint are not judged, however many there are.
func TestShortPhases(t *testing.T) {
	all := measured("mendoza")
	all[0].experiment = "D1\nphase: 500ms"
	got := sentences(t, all...)
	for _, i := range []int{0, 3} {
		require.Equal(t, "Cannot be judged: a phase lasted 500ms, which is below 1s. The tables have the figures; more --time makes phases longer.", got[i])
	}
	short := growth("sqlite", "30 p99-ms 5990 rows/s", "40 p99-ms 5990 rows/s", "50 p99-ms 5990 rows/s")
	short.experiment += "\nphase: 500ms"
	require.Equal(t, "not known: measure sqlite first", evaluate(t, short).Walks[0].Leaf)
}

// A rate that was not asked is not one that was not carried.
func TestNotAsked(t *testing.T) {
	of := func(engine, rate string) string {
		return "Frontier/engine=" + engine + "/layout=compact/profile=mendoza/scale=1/mix=W/rate=" + rate
	}
	const text = "%v rows/s %v p99-ms %v qps %v read-p99-ms"
	got := sentences(t,
		repeated("I3", of("sqlite", "7000"), text, 7_300, 20, 5_000, 5),
		repeated("I3", of("sqlite", "30000"), text, 31_000, 20, 4_000, 9),
		repeated("I3", of("libsql", "7000"), text, 7_300, 20, 5_000, 5),
		repeated("I3", of("duckdb", "30000"), text, 9_000, 3_000, 1_000, 300))[2]
	require.Regexp(t, "nothing else carries that rate. libsql compact carries 7,000 rows/s and was not asked for more.$", got)

	v1 := func(engine string, rate, reads int) string {
		return fmt.Sprintf("V1/engine=%s/layout=compact/profile=mendoza/scale=1/mix=W/rate=%d/qps=%d", engine, rate, reads)
	}
	got = sentences(t, repeated("I5", v1("sqlite", 50_000, 10_000), text, 50_000, 20, 900, 2_000))[4]
	require.Regexp(t, "nothing carries any of the V1 loads that were asked; of the smallest of them sqlite compact delivers .* 8 were not asked", got)
}

// The reference has its figure, over all hosts, and others their ratio to it in
// their own sittings. A side without a common sitting is not compared.
func TestSentenceOfHosts(t *testing.T) {
	on := func(sitting, host, engine string, rate float64) lines {
		l := repeated("D1", "Sustained/engine="+engine+"/layout=compact/profile=own/scale=1/rate=max", "%v settled-rows/s %v p99-ms", rate, 5)
		l.experiment += "\nsitting: " + sitting + "\nhost: " + host
		return l
	}
	q := evaluate(t, on("1", "a", "sqlite", 100), on("1", "a", "libsql", 120), on("2", "b", "sqlite", 800), on("2", "b", "libsql", 880),
		on("3", "b", "sqlite", 600), on("3", "b", "libsql", 780), on("4", "b", "postgres", 5_000)).Questions[0]
	require.Equal(t, "postgres compact (not in a sitting with sqlite compact)", q.Unjudged)
	require.Equal(t, "At the size of the source libsql compact keeps up most writes: 1.2 times the rows/s of sqlite compact (1.1–1.3, n=3, 2 hosts); "+
		"next is sqlite compact with 603 rows/s (100–804, n=3, 2 hosts).", q.Sentence)
	got := sentences(t, on("1", "a", "sqlite", 100), on("1", "a", "libsql", 99))[0]
	require.Contains(t, got, "; not told apart from libsql compact with 1 % fewer rows/s than sqlite compact.")
	got = sentences(t, on("1", "a", "sqlite", 100), on("1", "a", "libsql", 100.1))[0]
	require.Contains(t, got, " sqlite compact keeps up most writes: ", "the reference goes before its equals")
	require.Contains(t, got, "; not told apart from libsql compact with as many rows/s as sqlite compact.")
	got = sentences(t, on("1", "a", "sqlite", 0), on("1", "a", "libsql", 0))[0]
	require.Contains(t, got, "Cannot be judged: sqlite compact, libsql compact (no operation finished).")
}

// Sizes of different sittings are not compared: the hour is another.
func TestGrowthOfSittings(t *testing.T) {
	all := measured("mendoza")
	for i := range all {
		if strings.Contains(all[i].name, "scale=2") {
			all[i].experiment += "\nsitting: 2"
		}
	}
	require.Equal(t, "Cannot be judged: sqlite compact, sqlite arkiv (its sizes are of different sittings). The tables have the figures; more --time repeats them.", sentences(t, all...)[3])
}

// A load at a rate shows the delivered, late and given-up parts, on each host;
// a load whose run was killed is not carried; and results that mix settings
// have no figure.
func TestDelivered(t *testing.T) {
	const name = "V1/engine=sqlite/layout=compact/profile=own/scale=1/mix=W/rate=50000/qps=10000"
	load := func(host string, reads, p99 float64) lines {
		l := repeated("I5\nhost: "+host, name, "%v rows/s %v p99-ms %v qps %v read-p99-ms 7 late 3 skipped 2 commit-late 0 commit-skipped", 51_000, 30, reads, p99)
		return l
	}
	got := sentences(t, load("a", 10_500, 50), load("b", 900, 2_500))[4]
	require.Contains(t, got, "nothing carries any of the V1 loads that were asked; of the smallest of them sqlite compact delivers on one host 51.3K rows/s (50K–52K) (2 late, 0 given up) with 10.6K reads/s")
	require.Regexp(t, "; on another .* with 904 reads/s .882–918. .7 late, 3 given up., .* read p99 ≥ 2 s", got)
	require.Contains(t, sentences(t, load("a", 10_500, 50))[4], "sqlite compact carries 1 of the 1 V1 loads")
	once := lines{"I5\nhost: a", strings.Replace(name, "50000", "25000", 1), []string{"25000 rows/s 30 p99-ms 10000 qps 50 read-p99-ms"}}
	seldom := evaluate(t, load("a", 10_500, 50), once).Questions[4]
	require.Contains(t, seldom.Sentence, "carries 1 of the 1 V1 loads that were asked")
	require.Contains(t, seldom.Sentence, "7 were not asked of it. 1 have too few runs to be judged.")
	require.Empty(t, seldom.Unjudged, "another load judges it")
	failed := lines{"I5\nhost: a\nexcluded: error: signal: killed", name, []string{"1 failed"}}
	got = sentences(t, load("a", 10_500, 50), failed)[4]
	require.Contains(t, got, "nothing carries any of the V1 loads that were asked")
	require.Contains(t, got, "; 1 runs were killed or failed.")
	got = sentences(t, failed, failed, failed)[4]
	require.Contains(t, got, "sqlite compact delivers – with –, no commit finished, no read finished; 3 runs were killed or failed. Of V1's nine loads 8 were not")
	other := load("a", 10_500, 50)
	other.name = strings.Replace(name, "/scale=1", "/durability=unsafe/scale=1", 1)
	require.Contains(t, sentences(t, load("a", 10_500, 50), other)[4], "Cannot be judged: sqlite compact (mixes I5 ")
}
