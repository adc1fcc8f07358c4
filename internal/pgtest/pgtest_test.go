package pgtest

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestNewURL(t *testing.T) {
	a, b := NewURL(t), NewURL(t)
	Exec(t, a, "CREATE TABLE t (n bigint); INSERT INTO t VALUES (1)")
	Exec(t, b, "CREATE TABLE t (n bigint); INSERT INTO t VALUES (2)")
	for url, want := range map[string]string{a: "1", b: "2"} {
		if got := Exec(t, url, "SELECT n FROM t"); got != want {
			t.Errorf("%s holds %s, want %s", url, got, want)
		}
	}
}

// TestDropped: a schema does not outlive its test.
func TestDropped(t *testing.T) {
	const schemas = "SELECT count(*) FROM information_schema.schemata WHERE schema_name LIKE 'Test %'"
	outer := NewURL(t)
	t.Run("inner", func(t *testing.T) {
		url := NewURL(t)
		Exec(t, url, "CREATE TABLE t (n bigint)")
		if got := Exec(t, outer, schemas); got != "2" {
			t.Errorf("%s schemas, want 2", got)
		}
	})
	if got := Exec(t, WithDatabase(t, outer, "varve"), schemas); got != "1" {
		t.Errorf("%s schemas, want 1", got)
	}
}
