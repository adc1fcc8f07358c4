package storetest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// runLease: one process at a time has the lease, and others may still write.
// TestKill of the service checks that the lease ends with its process.
func runLease(t *testing.T, h Harness) {
	url := h.NewURL(t)
	db := h.open(t, url, nil)
	if hasGap(db.Engine(), "lease") {
		refuses(t, store.ErrUnsupported)(driver.TakeLease(t.Context(), db.Engine()))
		return
	}
	asks := []*store.DB{db}
	if db.Engine().Capabilities().MultiProcess {
		asks = append(asks, h.open(t, url, nil))
	}
	newNumbers(t, db.Engine(), "leased")
	for _, owner := range asks {
		lease := must(driver.TakeLease(t.Context(), owner.Engine()))(t)
		require.NoError(t, lease.Held(t.Context()))
		for _, other := range asks {
			refuses(t, driver.ErrLocked)(driver.TakeLease(t.Context(), other.Engine()))
			inTx(t, other.Engine(), func(tx driver.Tx) { exec(t, tx, "DELETE FROM leased") })
		}
		require.NoError(t, lease.Held(t.Context()))
		require.NoError(t, lease.Release())
	}
	lease := must(driver.TakeLease(t.Context(), db.Engine()))(t)
	require.NoError(t, lease.Release())
	for _, open := range asks {
		closeDB(t, open)
	}
	if path, isFile := strings.CutPrefix(url, db.Engine().Info().Name+"://"); isFile && !h.Server {
		path, _, _ = strings.Cut(path, "?")
		left := must(filepath.Glob(path + "-lease"))(t)
		require.Empty(t, left)
		refuses(t, driver.ErrReadOnly)(driver.TakeLease(t.Context(), h.open(t, url, &store.Options{ReadOnly: true}).Engine()))
	}
}
