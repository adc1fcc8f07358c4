package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// runOutcomes: at each call of Check, Verify or Repair in turn, the server
// fails or the time ends. They must find no damage and report that the store
// was not checked. Damage that was found before stays reported.
func runOutcomes(t *testing.T, h Harness) {
	layouts := []string{"arkiv", "compact"}
	if h.slow() {
		layouts = layouts[1:]
	}
	for _, h.layout = range layouts {
		t.Run(h.layout, func(t *testing.T) {
			rawURL := h.quickURL(t)
			require.NoError(t, fillForCheck(t, h, rawURL).Close())
			f := &faults{}
			db := h.open(t, tap(f.see).tapped(t, rawURL, false), &store.Options{ReadOnly: true})
			t.Run("error", func(t *testing.T) {
				testUnchecked(t, h, db, f, func(context.CancelFunc) error { return errGone })
			})
			t.Run("expired", func(t *testing.T) {
				testUnchecked(t, h, db, f, func(context.CancelFunc) error { return driver.ErrReaderExpired })
			})
			t.Run("context", func(t *testing.T) {
				testUnchecked(t, h, db, f, func(cancel context.CancelFunc) error { cancel(); return nil })
			})
			closeDB(t, db)
			db = h.open(t, tap(f.see).tapped(t, rawURL, false), nil)
			t.Run("repair", func(t *testing.T) { testUnrepaired(t, h, db, f) })
			t.Run("damaged", func(t *testing.T) { testDamagedUnchecked(t, db, f) })
		})
	}
}

// errGone is an error that no package recognises.
var errGone = errors.New("the connection is gone")

// step is the distance between two calls that are made to fail.
func (h Harness) step() int {
	if h.slow() {
		return 97 // each check is slow
	}
	return 31
}

// testUnchecked makes each call fail in turn, until a check has no more calls.
func testUnchecked(t *testing.T, h Harness, db *store.DB, f *faults, fault func(context.CancelFunc) error) {
	ents := call1(t, db.Entities, nil)
	for name, check := range map[string]func(context.Context) error{
		"check": func(ctx context.Context) error {
			report := must(db.Check(ctx, nil))(t)
			require.Equal(t, outcomeOf(report.Err()), report.Outcome)
			require.Empty(t, report.Findings)
			return report.Err()
		},
		"verify": func(ctx context.Context) error {
			v, err := ents.Verify(ctx)
			require.Len(t, v.Parts, 2)
			return err
		},
	} {
		for at, fired := 1, true; fired; at += h.step() {
			ctx, cancel := context.WithCancel(t.Context())
			f.arm(at, func() error { return fault(cancel) })
			err := check(ctx)
			fired = f.disarm()
			cancel()
			want := store.Sound
			if fired {
				want = store.NotChecked
			}
			require.Equal(t, want, outcomeOf(err), "%s, call %d: %v", name, at, err)
		}
	}
}

// outcomeOf returns the outcome for an error.
func outcomeOf(err error) store.Outcome {
	switch {
	case err == nil:
		return store.Sound
	case errors.Is(err, store.ErrCorrupt):
		return store.Damaged
	}
	return store.NotChecked
}

// testUnrepaired: Repair changes nothing if it could not read the store.
func testUnrepaired(t *testing.T, h Harness, db *store.DB, f *faults) {
	for at, fired := 1, true; fired; at += h.step() {
		f.arm(at, func() error { return errGone })
		r, err := db.Repair(t.Context(), nil)
		fired = f.disarm()
		if err == nil {
			err = r.Err() // the call was one of the check after the repair
		}
		require.NotErrorIs(t, err, store.ErrCorrupt, "call %d", at)
		require.Equal(t, fired, err != nil, "call %d", at)
	}
}

// testDamagedUnchecked deletes a block, and then breaks the connection at the
// end of the check.
func testDamagedUnchecked(t *testing.T, db *store.DB, f *faults) {
	inTx(t, db.Engine(), func(tx driver.Tx) {
		exec(t, tx, `DELETE FROM varve_blocks WHERE block = 3`)
	})
	f.arm(0, nil)
	report := call1(t, db.Check, nil)
	require.Equal(t, store.Damaged, report.Outcome)

	f.arm(f.calls, func() error { return errGone })
	report = call1(t, db.Check, nil)
	require.True(t, f.disarm())
	require.Equal(t, store.Damaged, report.Outcome)
	require.ErrorIs(t, report.Err(), store.ErrCorrupt)
	require.ErrorIs(t, report.Err(), errGone)
}

// faults makes one call of a reader or a check fail, and all calls after it.
type faults struct {
	calls int
	at    int // the first call that fails; 0 for none
	fault func() error
	fired bool
	err   error
}

// arm makes call number at fail.
func (f *faults) arm(at int, fault func() error) { *f = faults{at: at, fault: fault} }

// disarm lets all calls pass again and reports whether one has failed.
func (f *faults) disarm() bool {
	f.at, f.err = 0, nil
	return f.fired
}

func (f *faults) see(call, _ string) error {
	if call != "snapshot" && call != "check" && !strings.HasPrefix(call, "read") {
		return nil
	}
	if f.calls++; f.calls == f.at {
		f.fired, f.err = true, f.fault()
	}
	return f.err
}
