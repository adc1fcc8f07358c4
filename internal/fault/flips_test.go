package fault

import (
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/crashtest"
	"github.com/varvedb/varve/store/driver"
	_ "github.com/varvedb/varve/store/sqlitego"
)

// errRefused is why an engine of refusing does not open a database.
var errRefused = errors.New("injected")

// refusing registers an engine that opens a database once and then refuses every
// other one, and returns its name.
func refusing() string {
	d, _ := driver.Lookup("sqlitego")
	inner, open, opened := d.Name, d.Open, false
	d.Name = "refusing"
	d.Open = func(ctx context.Context, u *url.URL, opts driver.Options) (driver.Engine, error) {
		if opened {
			return nil, errRefused
		}
		opened = true
		own := *u
		own.Scheme = inner
		return open(ctx, &own, opts)
	}
	driver.Register(d)
	return d.Name
}

// TestWholeCopyIsSound: the first copy has no fault. Anything but right answers
// means that the trial, not the store, is broken: its outcomes would say nothing.
func TestWholeCopyIsSound(t *testing.T) {
	_, err := crashtest.Torture(t.Context(), crashtest.Options{
		Trials: []crashtest.Trial{Flips(false)}, Engines: []string{refusing()}, Layouts: []string{"arkiv"},
		Seed: 1, Kills: 1, Dir: t.TempDir(),
	})
	require.ErrorContains(t, err, "a copy without a fault is not sound: refused")
	require.ErrorContains(t, err, errRefused.Error())
}
