package lab

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
)

// ProductionBlock is the entities of a block that has about the 500 rows of the
// user's documents.
const ProductionBlock = 20

// Base is the data set of the base profile of which a part of a scale is loaded, in blocks of so
// many entities; 0 leaves them as they are. It is that of the source in its place, whose blocks are
// as they are.
func (l *Lab) Base(layout string, scale float64, perBlock int) (*bench.Dataset, error) {
	source, err := l.history(scale, perBlock)
	if err != nil {
		return nil, err
	}
	return &bench.Dataset{Engine: l.Engine, Layout: layout, Source: source}, nil
}

// history is what a data set holds and what comes after it.
func (l *Lab) history(scale float64, perBlock int) (*bench.Source, error) {
	if l.Source != "" {
		return bench.TarSource(l.Cache, l.Source, uint64(scale), l.Seed)
	}
	return bench.MendozaSource(scale/l.Loaded, l.Seed, perBlock, l.Loaded)
}

// own begins the names of profiles that are sources, so that none is taken for the base profile.
const own = "own-"

// profile is the name of the base profile or the source in records.
func (l *Lab) profile() string {
	if l.Source != "" {
		return own + strings.TrimSuffix(filepath.Base(l.Source), ".tar")
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

// Oracle knows the answers on the loaded part.
func (l *Lab) Oracle(m *bench.Dataset) (*mix.Oracle, error) {
	o := mix.NewOracle()
	return o, l.Aside(func() error { return o.Follow(m.Source.Blocks()) })
}
