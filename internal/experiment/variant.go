package experiment

import (
	"context"

	"github.com/varvedb/varve/bench/result"
)

// variants are measurements of one kind: under each value with each layout.
type variants[T any] struct {
	name    string // of the records
	layouts []string
	values  []T
	config  func(layout string, v T) result.Config
	run     func(ctx context.Context, layout string, v T, r *result.Record) error
}

func (v variants[T]) measure(ctx context.Context, l *Lab) error {
	for _, layout := range v.layouts {
		for _, value := range v.values {
			err := l.measure(ctx, v.name, v.config(layout, value), func(ctx context.Context, r *result.Record) error {
				return v.run(ctx, layout, value, r)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// on begins the configuration of what is measured with a layout and a profile.
func (l *Lab) on(layout, profile string, more ...string) result.Config {
	return l.config(append([]string{"layout", layout, "profile", profile, "durability", string(l.Durability)}, more...)...)
}

// onBase begins that of what is measured on the base profile.
func (l *Lab) onBase(layout string, more ...string) result.Config {
	return l.on(layout, l.profile(), append([]string{"scale", ftoa(l.Scale)}, more...)...)
}

// put adds a figure to a record.
func put(r *result.Record, value float64, unit string) {
	r.Metrics = append(r.Metrics, result.Metric{Value: value, Unit: unit})
}
