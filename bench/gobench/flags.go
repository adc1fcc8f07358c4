package gobench

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/internal/coreset"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Flags are what the benchmarks can be told on the command line of go test.
type Flags struct {
	entities   int
	durability string
	layouts    string
	profiles   string
	manifest   string

	readers, concurrency int

	events       string
	eventLayouts string

	rebac         string
	relationships int
	rate          float64
	duration      time.Duration
}

// RegisterFlags adds the flags, which begin with "varve.", to a set.
func RegisterFlags(set *flag.FlagSet) *Flags {
	f := new(Flags)
	set.IntVar(&f.entities, "varve.entities", 0, "entities in the store before a benchmark begins (default 10000, with -short 2000)")
	set.StringVar(&f.durability, "varve.durability", string(driver.Durable), "durable, relaxed or unsafe")
	set.StringVar(&f.layouts, "varve.layouts", "", "entity layouts, separated by commas (default: those that the benchmark compares)")
	set.StringVar(&f.profiles, "varve.profiles", "typical", "profiles of entities, separated by commas: minimal, typical, large, or with a payload as typical-256B")
	set.StringVar(&f.manifest, "varve.manifest", "", "append a manifest of each run to this file, one line of JSON each")
	set.IntVar(&f.readers, "varve.readers", 0, "snapshots open at once (default: the store's, and no more than there are clients)")
	set.IntVar(&f.concurrency, "varve.concurrency", 0, "snapshots at work at once (default: the engine's)")
	set.StringVar(&f.events, "varve.events", "", "events in the store before a benchmark begins: tiny, small or a number; several separated by commas (default small, with -short tiny, by name both)")
	set.StringVar(&f.eventLayouts, "varve.eventlayouts", "", "event layouts, separated by commas (default: all that the engine has)")
	set.StringVar(&f.rebac, "varve.rebac", "", "size of the permission data: tiny, small or full, or several times one as in fullx2 (default small, with -short tiny)")
	set.IntVar(&f.relationships, "varve.social-relationships", 20_000, "relationships of the social graph")
	set.Float64Var(&f.rate, "varve.social-qps", 500, "requests a second of the social load")
	set.DurationVar(&f.duration, "varve.social-duration", time.Second, "length of the social load")
	return f
}

// size returns the number of entities to load.
func (f *Flags) size() int {
	switch {
	case f.entities > 0:
		return f.entities
	case testing.Short():
		return 2_000
	}
	return 10_000
}

// options returns how stores are opened.
func (f *Flags) options() (*store.Options, error) {
	d, err := driver.ParseDurability(f.durability)
	if err != nil {
		return nil, fmt.Errorf("-varve.durability: %w", err)
	}
	return &store.Options{Durability: d, Readers: f.readers, Concurrency: f.concurrency}, nil
}

// chooseLayouts returns the layouts asked for, or the given ones.
func (f *Flags) chooseLayouts(standard ...string) []string {
	if f.layouts == "" {
		return standard
	}
	return strings.Split(f.layouts, ",")
}

func (f *Flags) chooseProfiles() ([]bench.Profile, error) {
	return parseList("profiles", f.profiles, bench.ParseProfile)
}

func (f *Flags) eventData() ([]enrolment.Data, error) {
	names := f.events
	switch {
	case names != "":
	case testing.Short():
		names = "tiny"
	case coreset.Only():
		names = "small"
	default:
		names = "tiny,small"
	}
	return parseList("events", names, enrolment.Parse)
}

// parseList parses what a flag separates by commas.
func parseList[T any](flag, text string, parse func(string) (T, error)) (list []T, err error) {
	for part := range strings.SplitSeq(text, ",") {
		value, err := parse(part)
		if err != nil {
			return nil, fmt.Errorf("-varve.%s: %w", flag, err)
		}
		list = append(list, value)
	}
	return list, nil
}
