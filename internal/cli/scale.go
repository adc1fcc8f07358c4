package cli

import (
	"errors"
	"fmt"
	"iter"

	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// scaleCmd multiplies a source.
type scaleCmd struct {
	Source string `arg:"" store:"" name:"src" help:"Block tar, Arkiv SQLite database, URL of a store, or a generated stream such as mendoza:scale=0.001,seed=1."`
	Dst    string `arg:"" store:"" name:"url|file.tar" help:"Store to fill, or block tar to write."`
	Factor uint64 `min:"1" max:"1000000" help:"How many times the entities of the source." default:"2"`
	Method string `help:"Where in time copies go: duplicate (the same blocks), temporal (after the source), hybrid (half and half)." enum:"duplicate,temporal,hybrid" default:"hybrid"`
	Seed   uint64 `any:"" help:"Chooses the copies' keys." default:"1"`
	Batch  int    `min:"1" max:"1000000" help:"Changed entities in one transaction." default:"5000"`
	JSON   bool   `help:"Print the result as JSON."`
}

// Run scales.
func (c *scaleCmd) Run(e *env) (err error) {
	method, err := scaler.ParseMethod(c.Method)
	if err != nil {
		return usageError{err}
	}
	src, err := openSource(e.ctx, c.Source)
	if err != nil {
		return fmt.Errorf("scale: %w", err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	blocks := scaler.Scale(src.Reopen, scaler.ScaleOptions{Method: method, Factor: c.Factor, Seed: c.Seed})
	if isTar(c.Dst) {
		n, err := writeTar(e, blocks, c.Dst, 0)
		if err != nil {
			return fmt.Errorf("scale: %w", err)
		}
		fmt.Fprintf(e.stdout, "%d blocks in %s\n", n, c.Dst)
		return nil
	}
	return c.fill(e, blocks)
}

func (c *scaleCmd) fill(e *env, blocks iter.Seq2[entity.Block, error]) (err error) {
	ents, end, err := e.openFed(c.Dst, store.EntityOptions{DeferIndexes: true})
	if err != nil {
		return fmt.Errorf("scale: %w", err)
	}
	defer func() { err = errors.Join(err, end()) }()
	origin := fmt.Sprintf("scaled: %s, factor %d, %s, seed %d", driver.Redact(c.Source), c.Factor, c.Method, c.Seed)
	if _, err := beginOrigin(e.ctx, ents, origin); err != nil {
		return fmt.Errorf("scale: %w", err)
	}
	return load(e, ents, blocks, source.Amount{}, loadOptions{batch: c.Batch, name: "scale", json: c.JSON})
}
