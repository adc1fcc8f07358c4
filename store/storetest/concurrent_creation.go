package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
)

// creation is a case in which two handles create the store of one database.
type creation struct {
	name    string
	layouts [2]string
	events  bool // the database has events already
}

var creations = []creation{
	{"one layout", [2]string{"compact", "compact"}, false},
	{"two layouts", [2]string{"arkiv", "compact"}, false},
	{"one layout, with events", [2]string{"arkiv", "arkiv"}, true},
	{"two layouts, with events", [2]string{"arkiv", "compact"}, true},
}

// testCreation: two handles open one new database at once. With one layout both
// succeed. With two layouts one succeeds, and the error of the other one names
// both layouts.
func testCreation(t *testing.T, h Harness) {
	for _, c := range creations {
		t.Run(c.name, func(t *testing.T) {
			for range (h.trials() + 4) / 5 {
				url := c.database(t, h)
				var errs [2]error
				var together sync.WaitGroup
				for i, layout := range c.layouts {
					together.Go(func() { errs[i] = openAndApply(url, layout, uint64(i)) })
				}
				together.Wait()
				c.require(t, url, errs[:])
			}
		})
	}
}

// database returns the URL of a database without entities.
func (c creation) database(t *testing.T, h Harness) string {
	url := h.quickURL(t)
	if c.events {
		db := openDB(t, url)
		call1(t, db.Events, nil)
		closeDB(t, db)
	}
	return url
}

// openAndApply opens a store and applies a block. If the other handle has taken
// the block's number, it tries the next number.
func openAndApply(url, layout string, entity uint64) (err error) {
	ctx := context.Background()
	db, err := store.Open(ctx, url, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ents, err := db.Entities(ctx, &store.EntityOptions{Layout: layout})
	for number := uint64(1); err == nil; number++ {
		_, err = ents.Apply(ctx, newBlock(number, on(fmt.Sprint("by ", entity), opCreate(1000))))
		if err == nil {
			return nil
		}
		if errors.Is(err, store.ErrBlockOrder) {
			err = nil
		}
	}
	return err
}

// require compares the outcomes with the content of the store. Some engines
// give a file to one handle at a time, so that the other one may be refused.
func (c creation) require(t *testing.T, url string, errs []error) {
	t.Helper()
	several := linkedDriver(t, url).Capabilities.MultiProcess
	opened, refused := 0, 0
	for _, err := range errs {
		switch {
		case err == nil:
			opened++
		case errors.Is(err, store.ErrLayout) && c.layouts[0] != c.layouts[1]:
			require.Contains(t, err.Error(), c.layouts[0])
			require.Contains(t, err.Error(), c.layouts[1])
			refused++
		default:
			require.False(t, several, "%v", err)
			require.ErrorIs(t, err, store.ErrLocked)
		}
	}
	if several {
		require.Equal(t, c.layouts[0] != c.layouts[1], refused == 1, "%v", errs)
		require.Equal(t, 2, opened+refused)
	}
	require.NotZero(t, opened)
	db := openDB(t, url)
	ents := call1(t, db.Entities, nil)
	s := must(ents.At(t.Context(), store.Head))(t)
	require.Len(t, everything(t, s), opened, "nobody's block is lost")
	require.NoError(t, s.Close())
	closeDB(t, db)
}
