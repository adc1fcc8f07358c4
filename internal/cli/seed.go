package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"

	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// seedCmd generates a database or a block tar.
type seedCmd struct {
	Model  string  `arg:"" enum:"mendoza,dc" help:"What to generate: mendoza, shaped like a production store, or dc, data centres with known answers."`
	Dst    string  `arg:"" store:"" name:"url|file.tar" help:"Store to fill, or block tar to write."`
	Scale  float64 `above:"0" max:"100" help:"Size; 1 is 800,000 entities and 20 million rows." default:"0.001"`
	Seed   uint64  `any:"" help:"The same seed gives the same data everywhere." default:"1"`
	Load   uint64  `min:"0" max:"1000000000" help:"Of dc: blocks of updates after the initial state." default:"0"`
	Batch  int     `min:"1" max:"1000000" help:"Changed entities in one transaction." default:"5000"`
	DryRun bool    `help:"Print what would be generated, and do nothing."`
	JSON   bool    `help:"Print the result as JSON."`
}

// Run generates.
func (c *seedCmd) Run(e *env) error {
	g := source.Generated{Model: c.Model, Scale: c.Scale, Seed: c.Seed, Load: c.Load}
	a, err := g.Plan()
	var blocks iter.Seq2[entity.Block, error]
	if err == nil {
		blocks, err = g.Blocks(0)
	}
	switch {
	case err != nil:
		return usageError{err}
	case c.DryRun && c.JSON:
		return printJSON(e.stdout, a)
	case c.DryRun:
		fmt.Fprintf(e.stdout, "%s: %d entities in blocks %d to %d, %d rows, %s of payload; at most about %s on disk in layout %s\n",
			g, a.Entities, a.First, a.Last, a.Rows, size(a.PayloadBytes), size(diskBytes(a, schemas.DefaultLayout)), schemas.DefaultLayout)
		return nil
	case isTar(c.Dst):
		if err := enoughSpace(c.Dst, a.PayloadBytes); err != nil {
			return err
		}
		return writeTar(e, blocks, c.Dst, a.Last)
	}
	f := filling{name: "seed", url: c.Dst, batch: c.Batch, json: c.JSON, origin: g.Origin(), amount: &a, after: g.Blocks}
	return f.run(e, nil)
}

// scaleCmd multiplies a source.
type scaleCmd struct {
	Source string `arg:"" store:"" name:"src" help:"Block tar, Arkiv SQLite database, URL of a store, or a generated stream such as mendoza:scale=0.001,seed=1."`
	Dst    string `arg:"" store:"" name:"url|file.tar" help:"Store to fill, or block tar to write."`
	Factor uint64 `min:"1" max:"1000000" help:"How many times the entities of the source." default:"2"`
	Seed   uint64 `any:"" help:"Chooses the copies' keys." default:"1"`
	Batch  int    `min:"1" max:"1000000" help:"Changed entities in one transaction." default:"5000"`
	JSON   bool   `help:"Print the result as JSON."`
}

// Run scales.
func (c *scaleCmd) Run(e *env) (err error) {
	src, err := openSource(e.ctx, c.Source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	blocks := scaler.Scale(src.Reopen, scaler.ScaleOptions{Factor: c.Factor, Seed: c.Seed})
	if isTar(c.Dst) {
		return writeTar(e, blocks, c.Dst, 0)
	}
	origin := fmt.Sprintf("%s%s, factor %d, hybrid, seed %d", scaledOrigin, driver.Redact(c.Source), c.Factor, c.Seed)
	f := filling{name: "scale", url: c.Dst, batch: c.Batch, json: c.JSON, origin: origin}
	return f.run(e, &source.Source{Blocks: blocks})
}

// What is recorded in a store that was scaled from a source. Hybrid is what there is: copies
// that are half beside the original and half after it.
const scaledOrigin = "scaled: "

var scaledForm = regexp.MustCompile(`^scaled: .*, factor (\d+), hybrid, seed (\d+)$`)

// scaledFrom returns the blocks of a source, as often as the store was scaled from it.
func scaledFrom(ctx context.Context, ents *store.Entities, src *source.Source) (iter.Seq2[entity.Block, error], error) {
	origin, err := ents.Origin(ctx)
	if err != nil || !strings.HasPrefix(origin, scaledOrigin) {
		return src.Reopen(), err
	}
	parts := scaledForm.FindStringSubmatch(origin)
	if parts == nil {
		return nil, fmt.Errorf("%w: the store is %s", store.ErrUnsupported, origin)
	}
	var o scaler.ScaleOptions
	var wrong error
	o.Factor, err = strconv.ParseUint(parts[1], 10, 64)
	o.Seed, wrong = strconv.ParseUint(parts[2], 10, 64)
	return scaler.Scale(src.Reopen, o), errors.Join(err, wrong)
}
