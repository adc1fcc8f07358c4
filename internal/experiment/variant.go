package experiment

import (
	"context"

	"github.com/varvedb/varve/bench/result"
)

// variant is a configuration with the way to measure it, which makes what it needs
// and leaves nothing to others. What it fails with is in the record, and so is what it
// had measured before; only an end of ctx or of the set's file ends the experiment.
type variant struct {
	name   string // of the record
	config result.Config
	run    func(ctx context.Context, r *result.Record) error
}

// variants are of one kind: under each value with each layout.
type variants[T any] struct {
	name    string
	layouts []string // nil means those of the experiment, unless others were asked for
	values  []T
	config  func(layout string, v T) result.Config
	run     func(ctx context.Context, layout string, v T, r *result.Record) error
}

func (v variants[T]) of(l *Lab) (list []variant) {
	if v.layouts == nil {
		v.layouts = l.layouts(l.of.Layouts...)
	}
	for _, layout := range v.layouts {
		for _, value := range v.values {
			list = append(list, variant{v.name, v.config(layout, value), func(ctx context.Context, r *result.Record) error {
				return v.run(ctx, layout, value, r)
			}})
		}
	}
	return list
}

// layouts returns those that were asked for, or others.
func (l *Lab) layouts(others ...string) []string {
	if len(l.Layouts) > 0 {
		return l.Layouts
	}
	return others
}

// on begins the configuration of what is measured with a layout and a profile.
func (l *Lab) on(layout, profile string, more ...string) result.Config {
	return l.config(append([]string{"layout", layout, "profile", profile, "durability", string(l.Durability)}, more...)...)
}

// onBase begins that of what is measured on the base profile.
func (l *Lab) onBase(layout string, more ...string) result.Config {
	return l.on(layout, l.profile(), append([]string{"scale", ftoa(l.Scale)}, more...)...)
}
