package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/testdata"
)

const arkiv = "../../testdata/arkiv-small/"

var varve, must = clitest.Run, clitest.Must

func TestMain(m *testing.M) { os.Exit(clitest.Main(m)) }

func url(t *testing.T, name string) string { return "sqlite:" + filepath.Join(t.TempDir(), name) }

// TestImportForms imports the tar, Arkiv's own database and stores of other layouts, which
// give the same store, and repeats an import, which does nothing.
func TestImportForms(t *testing.T) {
	first, rows := url(t, "a.db"), url(t, "c.db")+"?layout=arkiv"
	for _, c := range []struct{ src, dst string }{
		{arkiv + "blocks.tar", first},
		{arkiv + "sqlite-store.db", url(t, "b.db") + "?layout=arkiv-pruned"},
		{first, rows},
		{rows, url(t, "d.db") + "?layout=simple"},
		{rows, url(t, "e.db") + "?layout=compact"},
		{arkiv + "blocks.tar", first},
		{arkiv + "sqlite-store.db", "duckdb://" + filepath.Join(t.TempDir(), "store")}, // which does not read SQLite files
	} {
		out := must(t, "import", c.src, c.dst)
		require.Contains(t, out, "head 1263, digest "+testdata.ArkivDigest, c.src)
		require.Equal(t, "605\n", must(t, "query", c.dst, "*", "--count"), c.dst)
	}
	require.Contains(t, must(t, "check", rows, "--against", first), "SOUND source: 800 entities are as they were created")
}

// TestImportState imports the database of Arkiv's sqlite-bitmap-store, which has the
// current state only, and says so. Copies of the store keep to it, also by way of a block
// tar.
func TestImportState(t *testing.T) {
	const head = "1131"
	first, second, dir := url(t, "a.db"), url(t, "b.db")+"?layout=compact", t.TempDir()
	ofDatabase, ofStore := filepath.Join(dir, "database.tar"), filepath.Join(dir, "store.tar")
	third, fourth := url(t, "third.db"), url(t, "fourth.db")
	for _, c := range []struct{ src, dst, want string }{
		{arkiv + "sqlite-bitmap-store.db", first, "40 blocks with 416 changes of entities"},
		{arkiv + "sqlite-bitmap-store.db", first, "0 blocks with 0 changes of entities"},
		{first, second, "40 blocks with 416 changes of entities"},
		{arkiv + "sqlite-bitmap-store.db", ofDatabase, "40 blocks in "},
		{ofDatabase, third, "40 blocks with 416 changes of entities"},
		{ofDatabase, third, "0 blocks with 0 changes of entities"},
		{first, ofStore, "40 blocks in "},
		{ofStore, fourth, "40 blocks with 416 changes of entities"},
	} {
		out := must(t, "import", c.src, c.dst)
		require.Contains(t, out, c.want)
		require.Contains(t, out, "readable from block "+head+" on")
		if c.dst == ofDatabase || c.dst == ofStore {
			continue
		}
		require.Equal(t, "382\n", must(t, "query", c.dst, "*", "--count"))
		require.Contains(t, must(t, "check", c.dst, "--against", arkiv+"sqlite-bitmap-store.db"), "SOUND source: ")
		_, errs, code := varve(t, "query", c.dst, "*", "--at", "1130")
		require.Equal(t, cli.ExitError, code)
		require.Contains(t, errs, "out of range")
	}
	var result struct{ Horizon uint64 }
	require.NoError(t, json.Unmarshal([]byte(must(t, "import", arkiv+"sqlite-bitmap-store.db", url(t, "c.db"), "--json")), &result))
	require.EqualValues(t, 1131, result.Horizon)
	require.NotContains(t, must(t, "import", arkiv+"sqlite-store.db", url(t, "d.db")), "readable from")
	// Copies of the state are in later blocks, each as far from its own head.
	require.Contains(t, must(t, "import", ofDatabase, url(t, "e.db"), "--factor", "2"), "readable from block 1262 on")
}

// TestErrorsNameTheCommandOnce: an operation of the library may be called as the command is.
func TestErrorsNameTheCommandOnce(t *testing.T) {
	for _, args := range [][]string{
		{"follow", "http://127.0.0.1:1", url(t, "a.db"), "--attempts", "1"},
		{"query", url(t, "b.db"), "*"},
	} {
		_, errs, code := varve(t, args...)
		require.Equal(t, cli.ExitError, code)
		require.Equal(t, 1, strings.Count(errs, args[0]+": "), errs)
	}
}

func TestQueryPrintsRecordedAnswers(t *testing.T) {
	dst := url(t, "a.db")
	must(t, "import", arkiv+"blocks.tar", dst)
	dec := json.NewDecoder(bytes.NewReader(testdata.ArkivQueries))
	for range 10 { // the suites ask all
		var q struct {
			Query   string
			AtBlock json.Number
			Keys    []string
		}
		require.NoError(t, dec.Decode(&q))
		out := must(t, "query", dst, q.Query, "--keys", "--at", q.AtBlock.String())
		require.ElementsMatch(t, q.Keys, strings.Fields(out), q.Query)
	}
	require.Contains(t, must(t, "query", dst, `type = "node"`, "--limit", "1"), "1 entities at block 1263")
	var e map[string]any
	require.NoError(t, json.Unmarshal([]byte(must(t, "query", dst, `type = "node"`, "--limit", "1", "--json")), &e))
	require.Equal(t, "node", e["string_attributes"].(map[string]any)["type"])
	require.Contains(t, e, "payload")
	require.NotContains(t, e, "content")
}

func TestInspect(t *testing.T) {
	dst := url(t, "a.db")
	require.Regexp(t, `^100 blocks with 1285 changes of entities in [\d.]+ s, [\d.,KM]+ changes/s; `, must(t, "import", arkiv+"blocks.tar", dst))
	var in struct {
		Store store.Summary
	}
	require.NoError(t, json.Unmarshal([]byte(must(t, "inspect", dst, "--json")), &in))
	require.Equal(t, uint64(605), in.Store.Live)
	require.Equal(t, testdata.ArkivDigest, in.Store.Digest)
	require.Contains(t, must(t, "inspect", dst), "rows in versions")
	require.Regexp(t, `\ndurability +durable for who writes by this URL\n`, must(t, "inspect", dst))
	require.Regexp(t, `\ndurability +relaxed for `, must(t, "inspect", dst+"?durability=relaxed"))
}

func TestEnginesListsGaps(t *testing.T) {
	besides(t)
	var list []struct {
		Name string
		Gaps []driver.Gap
	}
	require.NoError(t, json.Unmarshal([]byte(must(t, "engines", "--json")), &list))
	gaps := map[string]bool{}
	for _, e := range list {
		for _, g := range e.Gaps {
			require.NotEmpty(t, g.Reason)
			gaps[e.Name+"/"+g.Name] = true
		}
	}
	require.True(t, gaps["postgres/text-nul"], "%v", gaps)
	require.True(t, gaps["libsql/text-nul"], "%v", gaps)
}

// TestSeedIsRepeatable generates twice and after an interruption, and verifies.
func TestSeedIsRepeatable(t *testing.T) {
	digest := func(dst string) string {
		var res struct{ Digest string }
		require.NoError(t, json.Unmarshal([]byte(must(t, "import", "mendoza:scale=0.001", dst, "--json")), &res))
		return res.Digest
	}
	whole := digest(url(t, "a.db"))
	part := url(t, "b.db")
	ctx, cancel := context.WithCancel(t.Context())
	stop := stopAfter{cancel: cancel}
	code := cli.Run(ctx, []string{"import", "mendoza:scale=0.001", part, "--batch=50"}, &bytes.Buffer{}, &stop)
	require.Contains(t, []int{cli.ExitOK, cli.ExitInterrupted}, code)
	require.Equal(t, whole, digest(part))
	again := must(t, "import", "mendoza:scale=0.001", part)
	require.Contains(t, again, "0 blocks with 0 changes of entities", "what the store has is not made again")
	require.Contains(t, again, "0 blocks skipped")
	for _, dst := range []string{url(t, "c.db") + "?layout=simple", "duckdb://" + filepath.Join(t.TempDir(), "f.duckdb")} {
		require.Equal(t, whole, digest(dst), dst)
	}
	require.Contains(t, must(t, "check", part, "--against=mendoza:scale=0.001"), "SOUND source: 800 entities are as they were created")
	_, errs, code := varve(t, "import", "mendoza:scale=0.002", part)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "the store holds")
}

// stopAfter cancels at the first line of progress.
type stopAfter struct {
	bytes.Buffer
	cancel func()
}

func (s *stopAfter) Write(p []byte) (int, error) {
	s.cancel()
	return s.Buffer.Write(p)
}

// TestScaleForms scales the tar and the database, which give the same.
func TestScaleForms(t *testing.T) {
	var digests []string
	for _, src := range []string{"blocks.tar", "sqlite-store.db"} {
		dst := url(t, "s.db")
		out := must(t, "import", arkiv+src, dst, "--factor=3")
		digests = append(digests, out[strings.LastIndex(out, "digest"):])
		require.Contains(t, must(t, "check", dst, "--against", arkiv+src), "SOUND source: 2400 entities")
	}
	require.Equal(t, digests[0], digests[1])
}

// TestCheckAgainst: a store is compared with its source, and the first entity
// that differs is named.
func TestCheckAgainst(t *testing.T) {
	dc := url(t, "dc.db")
	must(t, "import", "dc:scale=0.0005,load=2", dc)
	must(t, "import", "dc:scale=0.0005,load=4", dc)
	for source, want := range map[string]struct {
		says string
		code int
	}{
		"dc:scale=0.0005,load=4":        {"SOUND source: 600 entities are as they were created", cli.ExitOK},
		"dc:scale=0.0005,seed=2,load=4": {"FAILED source (source): 0 entities are right, then the store has 0x", cli.ExitError},
		"dc:scale=0.0004,load=4":        {"FAILED source (source): ", cli.ExitError},
		"dc:scale=0":                    {"want above 0", cli.ExitUsage},
	} {
		out, errs, code := varve(t, "check", dc, "--against", source)
		require.Equal(t, want.code, code, out+errs)
		require.Contains(t, out+errs, want.says)
	}
	forgetful := url(t, "simple.db") + "?layout=simple"
	must(t, "import", "mendoza:scale=0.0001", forgetful)
	out, _, code := varve(t, "check", forgetful, "--against=mendoza:scale=0.0001", "--json")
	require.Equal(t, cli.ExitNotChecked, code, out)
	require.Contains(t, out, "layout simple does not keep them as they were created")
	require.Contains(t, out, `"outcome": "not checked",`)
}

// TestBadInput has a user's likely mistakes: a clear message, the right exit
// code, and the store at the last good block.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o644))
		return path
	}
	besides(t)
	dst := url(t, "a.db")
	must(t, "import", arkiv+"blocks.tar", dst)
	tar := testdata.ArkivBlocks
	state, err := os.ReadFile(arkiv + "sqlite-bitmap-store.db")
	require.NoError(t, err)
	flipped := bytes.Clone(tar)
	flipped[len(flipped)/2] ^= 0xff
	for _, c := range []struct {
		name, want string
		code       int
		args       []string
	}{
		{"truncated tar", "store is at block 1131", 1, []string{"import", file("cut.tar", tar[:len(tar)/2]), url(t, "x.db")}},
		{"corrupt tar", "store is at block", 1, []string{"import", file("bad.tar", flipped), url(t, "y.db")}},
		{"truncated database", "malformed", 1, []string{"import", file("cut.db", state[:len(state)/2]), url(t, "z.db")}},
		{"another database", "not Arkiv's", 1, []string{"import", strings.TrimPrefix(dst, "sqlite:"), url(t, "z.db")}},
		{"neither", "neither a block tar", 1, []string{"import", file("text", []byte("hello")), dst}},
		{"no such file", "no such file", 1, []string{"import", filepath.Join(dir, "none"), dst}},
		{"not a database", "damaged: file is not a database", 1, []string{"query", "sqlite:" + file("text.db", []byte("hello hello hello")), "*"}},
		{"another layout", "leave the layout out", 1, []string{"import", arkiv + "blocks.tar", dst + "?layout=simple"}},
		{"not a store", "no Varve store", 1, []string{"inspect", "sqlite:" + arkiv + "sqlite-store.db"}},
		{"no directory", "make it first", 1, []string{"import", arkiv + "blocks.tar", "sqlite:" + filepath.Join(dir, "a", "b.db")}},
		{"unknown engine", "unknown engine", 2, []string{"inspect", "oracle:x"}},
		{"missing, in the other program", "does not exist", 1, []string{"inspect", "libsql:" + filepath.Join(dir, "none.db")}},
		{"unknown parameter", "checkpoint_frames", 2, []string{"inspect", dst + "?nonsense=1"}},
		{"above the head", "the head is 1263", 1, []string{"query", dst, "*", "--at", "2000"}},
		{"bad query", "query 1:8", 2, []string{"query", dst, `type = "node`}},
		{"long query", "at most 65536", 2, []string{"query", dst, strings.Repeat("a = 1 || ", 20000) + "b = 2"}},
		{"no engine to torture", "unknown engine", 2, []string{"torture", "--engines=mysql"}},
		{"no layout to torture", "unknown layout", 2, []string{"torture", "--layouts=none"}},
		{"no trial", "unknown trial", 2, []string{"torture", "--trials=none"}},
		{"no server of the user's", "no server that", 2, []string{"compare", "sqlite://host/db"}},
		{"an engine twice", "given twice", 2, []string{"compare", "sqlite", "sqlite"}},
		{"no engine", "no server that", 2, []string{"run", "C1", "--engines=duckdb://x"}},
		{"scale too large", "scale", 2, []string{"import", "mendoza:scale=101", dst}},
		{"generated data over others", "blocks from elsewhere", 1, []string{"import", "dc:scale=0.0005", dst}},
		{"copies over others", "blocks from elsewhere", 1, []string{"import", arkiv + "blocks.tar", dst, "--factor=2"}},
		{"no room", "disk full", 1, []string{"import", "dc:scale=40", url(t, "big.db")}},
	} {
		out, errs, code := varve(t, c.args...)
		require.Equal(t, c.code, code, "%s: %s%s", c.name, out, errs)
		require.Contains(t, errs, c.want, c.name)
	}
	require.Contains(t, must(t, "inspect", dst), testdata.ArkivDigest)
}

// TestReadOnlyDirectory: without the right to write next to a store, a user
// gets advice, or reads it.
func TestReadOnlyDirectory(t *testing.T) {
	t.Setenv(clitest.AsCommand, "1") // else the process would run these tests
	bound := []string{os.Args[0]}
	if os.Getuid() == 0 { // whom permissions bind without these capabilities
		if _, err := exec.LookPath("setpriv"); err != nil {
			t.Skip("permissions do not bind root, and there is no setpriv")
		}
		bound = []string{"setpriv", "--bounding-set=-dac_override,-dac_read_search", os.Args[0]}
	}
	dir := t.TempDir()
	stores := map[string]string{"sqlite": "let them write in the directory", "sqlitego": "let them write in the directory", "duckdb": ""}
	for engine := range stores {
		must(t, "import", arkiv+"blocks.tar", engine+":"+filepath.Join(dir, engine))
	}
	require.NoError(t, os.Chmod(dir, 0o555))
	defer func() { require.NoError(t, os.Chmod(dir, 0o755)) }()
	run := func(args ...string) (string, error) {
		out, err := exec.Command(bound[0], append(bound[1:], args...)...).CombinedOutput()
		return string(out), err
	}
	for engine, advice := range stores {
		out, err := run("query", engine+":"+filepath.Join(dir, engine), "*", "--count")
		if advice == "" {
			require.NoError(t, err, out)
			continue
		}
		require.Error(t, err)
		require.Contains(t, out, advice)
	}
	out, err := run("import", arkiv+"blocks.tar", "sqlite:"+filepath.Join(dir, "new.db"))
	require.Error(t, err)
	require.Contains(t, out, "permission denied")
}
