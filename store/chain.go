package store

import (
	"context"
	"fmt"
	"strconv"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Chain identifies the chain of a store's blocks. Different chains may share an
// ID.
type Chain struct {
	ID      uint64      `json:"id"`
	Genesis entity.Hash `json:"genesis"` // hash of the chain's first block
}

// SetChain records the chain of the store's blocks. It fails with ErrHistory
// when another chain is recorded, and writes nothing when this one is.
func (e *Entities) SetChain(ctx context.Context, c Chain) (err error) {
	defer wrap(&err, "set chain")
	known, ok, err := e.Chain(ctx)
	if err != nil || ok && known == c {
		return err
	}
	return e.db.write(ctx, func(ctx context.Context, tx driver.Tx) error {
		known, ok, err := e.db.meta.chain(ctx, tx)
		if err != nil {
			return err
		}
		if ok && known != c {
			return fmt.Errorf("%w: the store is of chain %d with genesis block %s, not of chain %d with %s; give each chain a store of its own",
				ErrHistory, known.ID, known.Genesis, c.ID, c.Genesis)
		}
		return e.db.meta.setAll(ctx, tx, map[string]string{
			metaChain: strconv.FormatUint(c.ID, 10), metaGenesis: c.Genesis.String(),
		})
	})
}

// Chain returns the recorded chain; ok reports whether there is one.
func (e *Entities) Chain(ctx context.Context) (c Chain, ok bool, err error) {
	defer wrap(&err, "chain")
	err = e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		c, ok, err = e.db.meta.chain(ctx, q)
		return err
	})
	return c, ok, err
}

// SetOrigin records where the store's blocks come from. The text is up to the
// caller; Summary returns it.
func (e *Entities) SetOrigin(ctx context.Context, origin string) (err error) {
	defer wrap(&err, "set origin")
	return e.db.write(ctx, func(ctx context.Context, tx driver.Tx) error { return e.db.meta.set(ctx, tx, metaOrigin, origin) })
}

// Origin returns the text of SetOrigin, or "".
func (e *Entities) Origin(ctx context.Context) (string, error) {
	return inView(ctx, e.db, func(ctx context.Context, q driver.Querier) (string, error) {
		return e.db.meta.get(ctx, q, metaOrigin)
	})
}

func (m meta) chain(ctx context.Context, q driver.Querier) (c Chain, ok bool, err error) {
	id, err := m.get(ctx, q, metaChain)
	if err != nil || id == "" {
		return c, false, err
	}
	genesis, err := m.get(ctx, q, metaGenesis)
	if err != nil {
		return c, false, err
	}
	if c.ID, err = strconv.ParseUint(id, 10, 64); err == nil {
		c.Genesis, err = entity.ParseHash(genesis)
	}
	if err != nil {
		return c, false, fmt.Errorf("%w: recorded chain: %w", ErrCorrupt, err)
	}
	return c, true, nil
}
