package lab

import (
	"context"

	"github.com/varvedb/varve/bench"
)

// frontierRates are of rows a second, from none on.
var frontierRates = []float64{0, 2_000, seedRowRate, 10_000, 25_000, 50_000}

// frontier measures how many reads a second clients get beside each rate of writes.
func frontier(l *Lab) (list []Variant, _ error) {
	rates := l.Rates
	if len(rates) == 0 {
		rates = frontierRates
	}
	for _, layout := range l.layouts() {
		for _, scale := range l.sizes() {
			for _, rate := range rates {
				list = append(list, l.both("Frontier", layout, scale, beside{rows: rate}, "rate", ftoa(rate), "mix", besideMix))
			}
		}
	}
	return list, nil
}

// v1Scale is 621,000 entities, those of a first version.
const v1Scale = 621_000. / 800_000

// firstVersion measures the loads that a first version must carry, from its lower to its upper end.
func firstVersion(l *Lab) (list []Variant, _ error) {
	for _, layout := range l.layouts() {
		for _, rows := range []float64{10_000, 25_000, 50_000} {
			for _, reads := range []float64{1_000, 5_000, 10_000} {
				list = append(list, l.both("V1", layout, v1Scale*l.Scale, beside{rows, reads}, "mix", besideMix, "rate", ftoa(rows), "qps", ftoa(reads)))
			}
		}
	}
	return list, nil
}

// both is writes with reads beside them on one size.
func (l *Lab) both(name, layout string, scale float64, b beside, more ...string) Variant {
	return Variant{name, l.onScale(layout, scale, more...), func(ctx context.Context, r *Record) error {
		o := l.storeOptions()
		o.Readers = readers
		return l.withMendoza(ctx, layout, scale, o, r, func(d *mendoza, cp *bench.Copy) error {
			_, _, err := l.readBeside(ctx, d, cp, b, r)
			return err
		})
	}}
}
