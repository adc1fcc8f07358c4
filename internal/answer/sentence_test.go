package answer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// thrice are three measurements around each of the figures, of which a text has the units: "%v rows/s %v p99-ms".
func thrice(experiment, name, text string, figures ...float64) lines {
	l := lines{experiment: experiment, name: name}
	for _, factor := range []float64{1, 0.98, 1.02} {
		var values []any
		for _, f := range figures {
			values = append(values, f*factor)
		}
		l.values = append(l.values, fmt.Sprintf(text, values...))
	}
	return l
}

// measured is what varve answer measures of two layouts, of which the second is half as good, at two
// sizes, of which the second has nine tenths.
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
				thrice("D1", at("Sustained", "/rate=max"), "%v rows/s %v settled-rows/s %v p99-ms", 210_000*good, 200_000*good, 20/good),
				thrice("D1", at("Sustained", "/rate=6000"), "%v rows/s %v max-ms", 5_990, 10/good),
				thrice("C1", at("ReadMix", "/mix=W/clients=1/loop=closed"), "%v qps %v p99-ms", 5_000*good, 0.7/good),
				thrice("C1", at("ReadMix", "/mix=W/clients=10/loop=closed"), "%v qps %v p99-ms", 9_000*good, 3/good))
			if scale == "1" {
				continue
			}
			for _, rate := range []float64{2_000, 10_000, 50_000} {
				all = append(all, thrice("I3", at("Frontier", fmt.Sprintf("/rate=%v/mix=W", rate)), "%v rows/s %v p99-ms %v qps %v read-max-ms", rate*1.03, rate*good/25, 3_000*good, rate/1_000/good))
				all = append(all, thrice("I5", at("V1", fmt.Sprintf("/mix=W/rate=%v/qps=1000", rate)), "%v rows/s %v p99-ms %v qps %v read-p99-ms", rate*1.03, 20., 1_030., rate/200/good))
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
		"At 2 times the source sqlite compact keeps up most writes: 180K rows/s (176K–184K, n=3), commit p99 22.2 ms (21.8–22.7, n=3); next is sqlite arkiv with 60K rows/s (58.8K–61.2K, n=3).",
		"At 2 times the source sqlite compact answers most reads of mix W: 8,100 reads/s (7,938–8,262, n=3) with 10 clients, read p99 3.33 ms (3.27–3.4, n=3), and 4,500 reads/s (4,410–4,590, n=3) with one, read p99 0.778 ms (0.762–0.793, n=3); next is sqlite arkiv with 2,700 reads/s (2,646–2,754, n=3).",
		"At 2 times the source sqlite compact carries most of both with commits below 2 s and reads below 100 ms at p99: 51.5K rows/s (50.5K–52.5K, n=3) with 2,700 reads/s (2,646–2,754, n=3), commit p99 1,800 ms (1,764–1,836, n=3), longest read 55.6 ms (54.4–56.7, n=3); next is sqlite arkiv with 10.3K rows/s (10.1K–10.5K, n=3).",
		"From the size of the source to 2 times the source sqlite compact keeps most of its writes: from 200K rows/s (196K–204K, n=3) to 180K rows/s (176K–184K, n=3), that is 90 % (86.5–93.7, n=3); next is sqlite arkiv with 60 % (57.6–62.4, n=3). Of its reads of mix W with 10 clients sqlite compact keeps most: from 9,000 reads/s (8,820–9,180, n=3) to 8,100 reads/s (7,938–8,262, n=3), that is 90 % (86.5–93.7, n=3); next is sqlite arkiv with 60 % (57.6–62.4, n=3).",
		"At 2 times the source sqlite compact carries 1 of the 2 V1 loads that were asked of it, none carries more; of the largest of them it delivers 10.3K rows/s (10.1K–10.5K, n=3) with 1,030 reads/s (1,009–1,051, n=3), commit p99 20 ms (19.6–20.4, n=3), read p99 55.6 ms (54.4–56.7, n=3). Of V1's nine loads 7 were not asked of it often enough to be judged.",
	}, sentences(t, measured("own-node")...))
}

// What is not measured three times is not judged, and what is not measured is said with what measures it.
func TestFewAndNone(t *testing.T) {
	few := measured("mendoza")
	for i := range few {
		few[i].values = few[i].values[:2]
	}
	for _, s := range sentences(t, few...) {
		require.Equal(t, "Cannot be judged: n is below 3 for sqlite compact, sqlite arkiv. The tables have the figures; more --time repeats them.", s)
	}
	some := append(measured("mendoza"), thrice("D1", "Sustained/engine=sqlite/layout=compact/profile=mendoza/scale=4/rate=max", "%v settled-rows/s", 9_000))
	require.Contains(t, sentences(t, some...)[0], "At 1.6M entities of the base profile (scale 2) sqlite compact") // 4 has no other layout
	for i, id := range []string{"D1", "C1", "I3", "D1", "I5"} {
		require.Equal(t, "Not known: nothing was measured of it. varve answer measures it, and varve run "+id+" that alone.",
			sentences(t, lines{"A1", "Insert/engine=sqlite", []string{"1 rows/s"}})[i])
	}
}

// The rates of the curve are those that were asked for, whichever they are.
func TestOwnRates(t *testing.T) {
	name := "Frontier/engine=sqlite/layout=compact/profile=mendoza/scale=1/mix=W/rate="
	text := "%v rows/s %v p99-ms %v qps %v read-p99-ms"
	got := sentences(t,
		thrice("I3", name+"0", text, 0, 1, 9_000, 2),
		thrice("I3", name+"30000", text, 31_000, 20, 4_000, 9),
		thrice("I3", strings.Replace(name, "sqlite", "libsql", 1)+"30000", text, 31_100, 20, 3_000, 9),
		thrice("I3", name+"7000", text, 7_300, 20, 5_000, 5),
		thrice("I3", name+"70000", text, 40_000, 3_000, 1_000, 300))[2]
	require.Regexp(t, "sqlite compact carries most of both with .* below 100 ms at p99: 31K rows/s.*; next is libsql compact with 3,000 reads/s", got)
}

// Who was measured once is named and not ranked.
func TestNotRanked(t *testing.T) {
	once := lines{"D1", "Sustained/engine=libsql/layout=compact/profile=mendoza/scale=2/rate=max", []string{"999000 settled-rows/s"}}
	got := sentences(t, append(measured("mendoza"), once)...)[0]
	require.Regexp(t, "sqlite compact keeps up most writes.*; next is sqlite arkiv with .* Not judged, since n is below 3: libsql compact.$", got)
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
		thrice("I3", of("sqlite", "7000"), text, 7_300, 20, 5_000, 5),
		thrice("I3", of("sqlite", "30000"), text, 31_000, 20, 4_000, 9),
		thrice("I3", of("libsql", "7000"), text, 7_300, 20, 5_000, 5),
		thrice("I3", of("duckdb", "30000"), text, 9_000, 3_000, 1_000, 300))[2]
	require.Regexp(t, "next is libsql compact with 7,300 rows/s .* Above 7,000 rows/s libsql compact was not asked.$", got)

	v1 := func(engine string, rate, reads int) string {
		return fmt.Sprintf("V1/engine=%s/layout=compact/profile=mendoza/scale=1/mix=W/rate=%d/qps=%d", engine, rate, reads)
	}
	got = sentences(t, thrice("I5", v1("sqlite", 50_000, 10_000), text, 50_000, 20, 900, 2_000))[4]
	require.Regexp(t, "nothing carries any of the V1 loads that were asked; of the smallest of them sqlite compact delivers .* 8 were not asked", got)
}
