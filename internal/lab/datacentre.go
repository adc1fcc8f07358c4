package lab

import (
	"context"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store/entity"
)

// centre is the data set at a lab's scale: at scale 1 it has two data centres
// of 100,000 nodes and 500,000 workloads.
type centre struct {
	bench.Dataset
	model *dcseed.Model
}

func (l *Lab) centre(layout string, scale float64) (centre, error) {
	cfg, err := dcseed.ForScale(scale)
	if err != nil {
		return centre{}, err
	}
	cfg.Seed = l.Seed
	// Update blocks shrink with the data centre, because otherwise each would
	// rewrite a small one completely.
	cfg.NodeUpdates, cfg.WorkloadUpdates = ProductionBlock/4, 3*ProductionBlock/4
	model, err := dcseed.New(cfg)
	if err != nil {
		return centre{}, err
	}
	return centre{bench.Dataset{Engine: l.Engine, Layout: layout, Source: bench.DataCentreSource(model)}, model}, nil
}

// reads returns the mix at the end of the loaded part. For lists of a whole
// data centre it asks for the count and the first hundred, as a scheduler
// would.
func (c *centre) reads() mix.Reads {
	return mix.NewDataCentre(c.model, c.model.FirstLoadBlock()-1, 100)
}

// withCentre opens a variant's data set.
func (t *Trial) withCentre(ctx context.Context, f func(d centre) error) error {
	d, err := t.centre(t.layout(), t.scale())
	if err != nil {
		return err
	}
	return t.withDataset(ctx, d.Dataset, func() error { return f(d) })
}

// centres plans a run on the data set of each layout, for each value of a
// parameter.
func centres(name, key string, values []int, run func(t *Trial, ctx context.Context, value int) error) func(*Lab) ([]Variant, error) {
	return func(l *Lab) ([]Variant, error) {
		return across(l.LayoutsOr(), values, func(layout string, value int) Variant {
			return Variant{Name: name, Keys: l.On(layout, "dc", "scale", Ftoa(l.Scale), key, itoa(value)), Cost: BaseCost(l.Scale, 1, 0),
				Run: func(t *Trial, ctx context.Context) error { return run(t, ctx, value) }}
		})
	}
}

func (t *Trial) centreReads(ctx context.Context, clients int) error {
	t.Store.Readers = clients
	return t.withCentre(ctx, func(d centre) error {
		reads := d.reads()
		return t.readMix(ctx, t.warmed(reads, clients, warmUpReads), reads, t.Loop(clients, 0, 0))
	})
}

func (t *Trial) centreWrites(ctx context.Context, percent int) error {
	return t.withCentre(ctx, func(d centre) error {
		return t.paced(ctx, bench.CommitConfig{Blocks: t.mixed(d, percent), Config: pace.Config{Duration: t.Phase}})
	})
}

// mixed yields blocks in which a percentage of the operations update the data
// centre; the others create and update entities of the base profile.
func (l *Lab) mixed(d centre, percent int) bench.Stream {
	base := scaler.Merged(scaler.Stream(scaler.Mendoza(), scaler.Options{Scale: max(l.Scale, 0.02), Seed: l.Seed}), 4*ProductionBlock)
	if percent == 0 {
		return numbered(base, d.model.FirstLoadBlock())
	}
	return dcseed.Mix(base, d.Source.Rest(), percent)
}

// numbered renumbers blocks from first on. The numbers are denser than before,
// so no entity expires early.
func numbered(blocks bench.Stream, first uint64) bench.Stream {
	return func(yield func(entity.Block, error) bool) {
		for b, err := range blocks {
			b.Number = first
			first++
			if !yield(b, err) {
				return
			}
		}
	}
}

// centreVersionScale is the scale of a first version, which has 621,000
// entities.
const centreVersionScale = 621_000. / 1_200_000

// centreVersion measures the loads of a first version on data centres, whose
// queries have known answers. Updates and reads are both issued at their
// scheduled times. The lightest load comes first.
func centreVersion(l *Lab) ([]Variant, error) {
	scale := centreVersionScale * l.Scale
	loads := append([]concurrent{{rows: 2_000, reads: 100}, {rows: 2_000, reads: 500}}, firstVersionLoads()...)
	return across(l.LayoutsOr(), loads, func(layout string, load concurrent) Variant {
		c := l.On(layout, "dc", "scale", Ftoa(scale), "mix", "dc", "rate", Ftoa(load.rows), "qps", Ftoa(load.reads))
		return Variant{Name: "DataCentreCombined", Keys: c, Cost: BaseCost(scale, 1, 0), Run: func(t *Trial, ctx context.Context) error {
			t.Store.Readers = readers
			return t.withCentre(ctx, func(d centre) error {
				_, _, err := t.readAndCommit(ctx, load, d.reads())
				return err
			})
		}}
	})
}
