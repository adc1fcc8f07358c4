package cli_test

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// slowScheme is SQLite whose own check runs out of time.
const slowScheme = "slow-check"

func init() {
	driver.Register(driver.Driver{Name: slowScheme, Open: func(ctx context.Context, u *url.URL, opts driver.Options) (driver.Engine, error) {
		d, _ := driver.Lookup("sqlite")
		own := *u
		own.Scheme = d.Name
		e, err := d.Open(ctx, &own, opts)
		return slowEngine{e}, err
	}})
}

// slowEngine is its engine.
type slowEngine struct{ driver.Engine }

// Check implements driver.Engine.
func (e slowEngine) Check(context.Context, func(string) bool) (string, error) {
	return "", context.DeadlineExceeded
}

// TestCheckOutcomes: sound, damaged and not checked have an exit code each, the
// reason is said, and --json has the outcome of each part.
func TestCheckOutcomes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	db, err := store.Open(t.Context(), "sqlite:"+path+"?layout=arkiv", nil)
	require.NoError(t, err)
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	_, err = ents.Apply(t.Context(), entity.Block{Number: 1, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{1}, BTL: 9, Content: []byte("x")}}})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	check := func(code int, args ...string) (out, errs string, parts map[string]store.Outcome) {
		t.Helper()
		got, out, errs := varve(append(args, "--json")...)
		require.Equal(t, code, got, errs)
		var r struct {
			Outcome store.Outcome
			Parts   []store.PartReport
		}
		if strings.HasPrefix(out, "{") {
			require.NoError(t, json.Unmarshal([]byte(out), &r))
		}
		parts = map[string]store.Outcome{"": r.Outcome}
		for _, p := range r.Parts {
			parts[p.Part] = p.Outcome
		}
		return out, errs, parts
	}

	_, _, parts := check(cli.ExitOK, "check", "sqlite:"+path)
	require.Equal(t, map[string]store.Outcome{"": store.Sound, "record": store.Sound, "history": store.Sound,
		"entities": store.Sound, "engine": store.Sound}, parts)

	_, errs, parts := check(cli.ExitNotChecked, "check", slowScheme+":"+path)
	require.Equal(t, store.NotChecked, parts[""])
	require.Equal(t, store.NotChecked, parts["engine"])
	require.Equal(t, store.Sound, parts["history"])
	require.Contains(t, errs, "check again")
	require.Contains(t, errs, context.DeadlineExceeded.Error())
	_, errs, _ = check(cli.ExitNotChecked, "check", "sqlite:"+filepath.Join(dir, "none.db"))
	require.Contains(t, errs, "does not exist")
	check(cli.ExitNotChecked, "check", "--repair", slowScheme+":"+path)

	db, err = store.Open(t.Context(), "sqlite:"+path, nil)
	require.NoError(t, err)
	tx, err := db.Engine().Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "UPDATE payloads SET content_type = 'x'")
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, db.Close())
	for _, u := range []string{"sqlite:", slowScheme + ":"} {
		_, _, parts = check(cli.ExitError, "check", u+path)
		require.Equal(t, store.Damaged, parts[""])
		require.Equal(t, store.Damaged, parts["history"])
	}
	_, errs, _ = check(cli.ExitError, "check", "--repair", "sqlite:"+path)
	require.Contains(t, errs, "restore a backup")

	require.NoError(t, os.Truncate(path, 100))
	check(cli.ExitError, "check", "sqlite:"+path)
}
