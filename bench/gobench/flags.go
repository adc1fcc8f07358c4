package gobench

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/store/driver"
)

// Flags are what the benchmarks can be told on the command line of go test.
type Flags struct {
	all        bool
	scale      float64
	durability string
	layouts    string
	source     string
}

// RegisterFlags adds the flags, which begin with "varve.", to a set.
func RegisterFlags(set *flag.FlagSet) *Flags {
	f := new(Flags)
	set.BoolVar(&f.all, "varve.all", false, "everything that the pattern of -bench matches, and not the core set alone")
	set.Float64Var(&f.scale, "varve.scale", 0, "part of the sizes of the user's documents (default 0.0125, which is 10,000 entities, with -short 0.0025)")
	set.StringVar(&f.durability, "varve.durability", string(driver.Durable), "durable, relaxed or unsafe")
	set.StringVar(&f.layouts, "varve.layouts", "", "layouts, separated by commas (default: those that each experiment compares)")
	set.StringVar(&f.source, "varve.source", "", "data in place of the base profile: the absolute path of a block tar, or what else the engine of the package opens; only what asks nothing of the base profile is measured")
	return f
}

// memory is the budget that caches follow from. Here nothing keeps it.
const memory = 1 << 30

// options returns those of the lab. A phase takes what -benchtime says: of a number of
// operations, as 1x, as little as can be.
func (f *Flags) options() (o lab.Options, err error) {
	o = lab.Options{Scale: f.scale, Phase: 50 * time.Millisecond, Seed: 1, Loaded: 0.6, Memory: memory, Sitting: "go-test"}
	if o.Scale == 0 {
		if o.Scale = 0.0125; testing.Short() {
			o.Scale = 0.0025
		}
	}
	if f.layouts != "" {
		o.Layouts = strings.Split(f.layouts, ",")
	}
	if given := flag.Lookup("test.benchtime"); given != nil {
		if phase, err := time.ParseDuration(given.Value.String()); err == nil {
			o.Phase = phase
		}
	}
	o.Durability, err = driver.ParseDurability(f.durability)
	return o, err
}

// Skip skips a benchmark that is not of the core set, unless everything is asked for.
func (f *Flags) Skip(b *testing.B) {
	b.Helper()
	if !f.all {
		b.Skip("not in the core set: -varve.all measures it")
	}
}
