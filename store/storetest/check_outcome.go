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

// runOutcomes: a check, a Verify and a Repair that cannot look, at whatever call the
// server or the time is gone, find nothing and say that they have not checked.
// Damage that was found stays damage though something else could not be looked at.
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
			require.NoError(t, db.Close())
			db = h.open(t, tap(f.see).tapped(t, rawURL, false), nil)
			t.Run("repair", func(t *testing.T) { testUnrepaired(t, h, db, f) })
			t.Run("damaged", func(t *testing.T) { testDamagedUnchecked(t, db, f) })
		})
	}
}

// errGone is no error that anybody knows.
var errGone = errors.New("the connection is gone")

// step is how many calls are passed over between two that fail.
func (h Harness) step() int {
	if h.slow() {
		return 97 // each check is slow
	}
	return 31
}

// testUnchecked lets one call after the other fail, until there are no more.
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

// outcomeOf tells what an error says of a store.
func outcomeOf(err error) store.Outcome {
	switch {
	case err == nil:
		return store.Sound
	case errors.Is(err, store.ErrCorrupt):
		return store.Damaged
	}
	return store.NotChecked
}

// testUnrepaired: Repair changes nothing of a store that it could not look at.
func testUnrepaired(t *testing.T, h Harness, db *store.DB, f *faults) {
	for at, fired := 1, true; fired; at += h.step() {
		f.arm(at, func() error { return errGone })
		r, err := db.Repair(t.Context(), nil)
		fired = f.disarm()
		if err == nil {
			err = r.Err() // the call was one of the check afterwards
		}
		require.NotErrorIs(t, err, store.ErrCorrupt, "call %d", at)
		require.Equal(t, fired, err != nil, "call %d", at)
	}
}

// testDamagedUnchecked takes a block away, and then the connection under the end of
// the check.
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

// faults lets one call of readers or a check fail, and all after it.
type faults struct {
	calls int
	at    int // the first call that fails; 0 for none
	fault func() error
	fired bool
	err   error
}

// arm makes the call fail that comes after at-1 others.
func (f *faults) arm(at int, fault func() error) { *f = faults{at: at, fault: fault} }

// disarm ends that and tells whether the call came.
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
