package lab

import (
	"context"
	"iter"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store/entity"
)

// centre is the data set of a lab's scale: at scale 1 two data centres of 100,000 nodes and 500,000 workloads.
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
	// Blocks of updates shrink with the data centre, or each would rewrite a
	// small one whole.
	cfg.NodeUpdates, cfg.WorkloadUpdates = ProductionBlock/4, 3*ProductionBlock/4
	model, err := dcseed.New(cfg)
	if err != nil {
		return centre{}, err
	}
	return centre{bench.Dataset{Engine: l.Engine, Layout: layout, Source: bench.DataCentreSource(model)}, model}, nil
}

// reads returns the mix at the end of the loaded part. Lists of whole data
// centres are asked for as numbers and first hundreds, as a scheduler would.
func (c *centre) reads() mix.Reads {
	return mix.NewDataCentre(c.model, c.model.FirstLoadBlock()-1, 100)
}

// centres measure the data set of each layout under each value of a parameter.
func centres(name, key string, values []int, f func(l *Lab, ctx context.Context, d centre, value int, r *Record) error) func(*Lab) ([]Variant, error) {
	return func(l *Lab) (list []Variant, _ error) {
		for _, layout := range l.LayoutsOr() {
			for _, value := range values {
				c := l.On(layout, "dc", "scale", Ftoa(l.Scale), key, itoa(value))
				list = append(list, Variant{Name: name, Keys: c, Cost: baseCost(l.Scale, 1, 0), Run: func(ctx context.Context, r *Record) error {
					d, err := l.centre(layout, l.Scale)
					if err != nil {
						return err
					}
					return f(l, ctx, d, value, r)
				}})
			}
		}
		return list, nil
	}
}

func (l *Lab) centreReads(ctx context.Context, d centre, clients int, r *Record) error {
	o := l.StoreOptions()
	o.Readers = clients
	return l.withDataset(ctx, d.Dataset, o, r, func(cp *bench.Copy) error {
		reads := d.reads()
		cfg := bench.ReadMixConfig{Mix: reads, Config: l.Loop(clients, 0, 0)}
		return l.readMix(ctx, cp, l.warmed(cp, reads, clients, warmUpReads), cfg, r)
	})
}

func (l *Lab) centreWrites(ctx context.Context, d centre, percent int, r *Record) error {
	return l.withDataset(ctx, d.Dataset, l.StoreOptions(), r, func(cp *bench.Copy) error {
		return l.paced(ctx, cp, bench.CommitConfig{Blocks: l.mixed(d, percent), Config: pace.Config{Duration: l.Phase}}, r)
	})
}

// mixed yields blocks in which a percentage of the operations updates the data
// centre and the others create and update entities of the base profile.
func (l *Lab) mixed(d centre, percent int) iter.Seq2[entity.Block, error] {
	base := bench.Merged(scaler.Stream(scaler.Mendoza(), scaler.Options{Scale: max(l.Scale, 0.02), Seed: l.Seed}), 4*ProductionBlock)
	if percent == 0 {
		return numbered(base, d.model.FirstLoadBlock())
	}
	return dcseed.Mix(base, d.Source.Rest(), percent)
}

// numbered gives blocks the numbers from first on. Time passes faster for their
// entities then, which ends none of them before its time.
func numbered(blocks iter.Seq2[entity.Block, error], first uint64) iter.Seq2[entity.Block, error] {
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

// centreVersionScale is that of a first version, which has 621,000 entities.
const centreVersionScale = 621_000. / 1_200_000

// centreLoads are a first version's loads, after the updates of a data centre
// of that size with few reads.
func centreLoads() []concurrent {
	loads := []concurrent{{rows: 2_000, reads: 100}, {rows: 2_000, reads: 500}}
	for _, load := range report.FirstVersion {
		loads = append(loads, concurrent{load[0], load[1]})
	}
	return loads
}

// centreVersion measures the loads of a first version on data centres, whose
// own queries have known answers: updates and reads are both due at their
// times.
func centreVersion(l *Lab) (list []Variant, _ error) {
	scale := centreVersionScale * l.Scale
	for _, layout := range l.LayoutsOr() {
		for _, load := range centreLoads() {
			c := l.On(layout, "dc", "scale", Ftoa(scale), "mix", "dc", "rate", Ftoa(load.rows), "qps", Ftoa(load.reads))
			list = append(list, Variant{Name: "DataCentreCombined", Keys: c, Cost: baseCost(scale, 1, 0), Run: func(ctx context.Context, r *Record) error {
				d, err := l.centre(layout, scale)
				if err != nil {
					return err
				}
				o := l.StoreOptions()
				o.Readers = readers
				return l.withDataset(ctx, d.Dataset, o, r, func(cp *bench.Copy) error {
					_, _, err := l.together(ctx, cp, bench.CommitConfig{Blocks: d.Source.Rest(), RowRate: load.rows}, d.reads(), load.reads, r)
					return err
				})
			}})
		}
	}
	return list, nil
}
