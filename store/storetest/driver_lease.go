package storetest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// runLease: one at a time has the lease, whoever asks, and it keeps nobody from
// writing. That it ends with its process is in TestKill of the service.
func runLease(t *testing.T, h Harness) {
	url := h.NewURL(t)
	db := h.open(t, url, nil)
	if hasGap(db.Engine(), "lease") {
		_, err := driver.TakeLease(t.Context(), db.Engine())
		require.ErrorIs(t, err, store.ErrUnsupported)
		return
	}
	asks := []*store.DB{db}
	if db.Engine().Capabilities().MultiProcess {
		asks = append(asks, h.open(t, url, nil))
	}
	newTable(t, db.Engine(), false, numbersTable("leased"))
	for _, owner := range asks {
		lease := must(driver.TakeLease(t.Context(), owner.Engine()))(t)
		require.NoError(t, lease.Held(t.Context()))
		for _, other := range asks {
			_, err := driver.TakeLease(t.Context(), other.Engine())
			require.ErrorIs(t, err, driver.ErrLocked)
			inTx(t, other.Engine(), func(tx driver.Tx) { exec(t, tx, "DELETE FROM leased") })
		}
		require.NoError(t, lease.Held(t.Context()))
		require.NoError(t, lease.Release())
	}
	lease := must(driver.TakeLease(t.Context(), db.Engine()))(t)
	require.NoError(t, lease.Release())
	for _, open := range asks {
		require.NoError(t, open.Close())
	}
	if path, isFile := strings.CutPrefix(url, db.Engine().Info().Name+"://"); isFile && !h.Server {
		path, _, _ = strings.Cut(path, "?")
		left := must(filepath.Glob(path + "-lease"))(t)
		require.Empty(t, left)
		_, err := driver.TakeLease(t.Context(), h.open(t, url, &store.Options{ReadOnly: true}).Engine())
		require.ErrorIs(t, err, driver.ErrReadOnly)
	}
}
