package main

import (
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/varvedb/varve/store"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// served is a devnet that a test has started.
type served struct {
	*devnet
	url string
}

// newDevnet starts one that makes blocks at once.
func newDevnet(t *testing.T, layout string) *served {
	t.Helper()
	d, err := open(t.Context(), options{
		url: "sqlite://" + filepath.Join(t.TempDir(), "devnet.db") + "?durability=unsafe", layout: layout, chainID: 1337,
	})
	check(t, err)
	web := httptest.NewServer(d.server)
	t.Cleanup(func() {
		d.server.rpc.Stop()
		web.Close()
		check(t, d.close())
	})
	return &served{d, web.URL}
}

// verify checks the store, and that it is at the chain's last block.
func (d *served) verify(t *testing.T) {
	t.Helper()
	head, err := d.ents.Head(t.Context())
	check(t, err)
	if last := d.chain.head(); head.Block != last.NumberU64() || head.Hash != store.Hash(last.Hash()) {
		t.Errorf("the store is at block %d %s, the chain at %d %s", head.Block, head.Hash, last.NumberU64(), last.Hash())
	}
	_, err = d.ents.Verify(t.Context())
	check(t, err)
}
