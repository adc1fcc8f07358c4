package lab

import (
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/store"
)

// productionBlock is the entities of a block that has about the 500 rows of the
// user's documents.
const productionBlock = 20

// baseData is a data set of the base profile, or of the source in its place, with what comes
// after it.
type baseData struct {
	bench.Dataset
	scale float64
}

// base is the data set of which a part of a scale is loaded, in blocks of so many
// entities; 0 leaves them as they are, and so are those of a source.
func (l *Lab) base(layout string, scale float64, perBlock int) (*baseData, error) {
	source, err := l.history(scale, perBlock)
	if err != nil {
		return nil, err
	}
	return &baseData{bench.Dataset{Engine: l.Engine, Layout: layout, Source: source}, scale}, nil
}

// history is what a data set holds and what comes after it. A source is read once for a scale.
func (l *Lab) history(scale float64, perBlock int) (*bench.Source, error) {
	if l.Source == "" {
		source, err := bench.MendozaSource(scale/l.Loaded, l.Seed, perBlock, l.Loaded)
		if err == nil && l.Bare {
			source = source.Bare
		}
		return source, err
	}
	if known := l.sources[scale]; known != nil {
		return known, nil
	}
	source, err := bench.TarSource(l.Source, uint64(scale), l.Seed)
	if err != nil {
		return nil, err
	}
	if l.sources == nil {
		l.sources = map[float64]*bench.Source{}
	}
	l.sources[scale] = source
	return source, nil
}

// own begins the names of profiles that are sources, so that none is taken for the base profile.
const own = "own-"

// profile is the name of the base profile or the source in records.
func (l *Lab) profile() string {
	switch {
	case l.Source != "":
		return own + strings.TrimSuffix(filepath.Base(l.Source), ".tar")
	case l.Bare:
		return "mendoza-bare"
	}
	return "mendoza"
}

// mixes are the read mixes: those over the base profile ask for its attributes.
func (l *Lab) mixes() []string {
	if l.Source != "" {
		return []string{mix.W}
	}
	return mix.Names
}

// whole makes scales of a source whole multiples of it.
func (o *Options) whole() {
	if o.Source == "" {
		return
	}
	o.Scale = math.Ceil(o.Scale)
	o.Sizes = slices.Clone(o.Sizes)
	for i, size := range o.Sizes {
		o.Sizes[i] = math.Ceil(size)
	}
}

// scaleBytes is about what a block tar of the base profile at scale 1 takes.
const scaleBytes = 5 << 30

// worth is about the scale of the base profile that has as much as a scale of the data.
func (o *Options) worth(scale float64) float64 {
	if o.Source == "" {
		return scale
	}
	st, err := os.Stat(o.Source)
	if err != nil {
		return scale // opening it will say what is wrong
	}
	return scale * float64(st.Size()) / scaleBytes
}

// Rest returns what comes after the loaded part, blocks without operations left
// out: they say nothing about a commit.
func (m *baseData) Rest() iter.Seq2[store.Block, error] {
	return func(yield func(store.Block, error) bool) {
		for b, err := range m.Source.Rest() {
			if (err != nil || len(b.Ops) > 0) && !yield(b, err) {
				return
			}
		}
	}
}

// scanned is how many of the blocks to come tell how many rows a block has.
const scanned = 100

// pacing is what the rows of a block are counted for.
type pacing struct{ scale, rate float64 }

// every returns the interval of blocks at which their rows come to a rate; zero
// for a rate of zero, which is as fast as possible. It streams the loaded part of the
// base profile too, which Rest does each time, and so once for a scale. The blocks of a
// source are of very different sizes: there it counts all that a phase has at the rate.
func (l *Lab) every(m *baseData, rate float64) (time.Duration, error) {
	if rate == 0 {
		return 0, nil
	}
	of, least := pacing{scale: m.scale}, 0.
	if l.Source != "" {
		of.rate, least = rate, rate*l.Phase.Seconds()
	}
	if each, known := l.blockRows[of]; known {
		return time.Duration(each / rate * float64(time.Second)), nil
	}
	rows, blocks := 0, 0
	for b, err := range m.Rest() {
		if err != nil {
			return 0, err
		}
		_, n := bench.Written(&b)
		rows += n
		if blocks++; blocks >= scanned && float64(rows) >= least {
			break
		}
	}
	if l.blockRows == nil {
		l.blockRows = map[pacing]float64{}
	}
	l.blockRows[of] = float64(rows) / float64(max(blocks, 1))
	return l.every(m, rate)
}

// oracle knows the answers on the loaded part.
func (l *Lab) oracle(m *baseData) (*mix.Oracle, error) {
	o := mix.NewOracle()
	return o, l.aside(func() error { return o.Follow(m.Source.Blocks()) })
}
