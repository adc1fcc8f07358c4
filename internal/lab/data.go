package lab

import (
	"iter"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/store"
)

// productionBlock is the entities of a block that has about the 500 rows of the
// user's documents.
const productionBlock = 20

// mendoza is a data set of the base profile with what comes after it.
type mendoza struct {
	bench.Dataset
	scale float64
}

// mendoza is the data set of which a part of a scale is loaded, in blocks of so many
// entities; 0 leaves them as they are.
func (l *Lab) mendoza(layout string, scale float64, perBlock int) (*mendoza, error) {
	source, err := bench.MendozaSource(scale/l.Loaded, l.Seed, perBlock, l.Loaded)
	if err != nil {
		return nil, err
	}
	if l.Bare {
		source = source.Bare
	}
	return &mendoza{bench.Dataset{Engine: l.Engine, Layout: layout, Source: source}, scale}, nil
}

// profile is the name of the base profile in records.
func (l *Lab) profile() string {
	if l.Bare {
		return "mendoza-bare"
	}
	return "mendoza"
}

// Rest returns what comes after the loaded part, blocks without operations left
// out: they say nothing about a commit.
func (m *mendoza) Rest() iter.Seq2[store.Block, error] {
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

// every returns the interval of blocks at which their rows come to a rate; zero
// for a rate of zero, which is as fast as possible. It streams the loaded part too,
// which Rest does each time, and so once for a scale.
func (l *Lab) every(m *mendoza, rate float64) (time.Duration, error) {
	if rate == 0 {
		return 0, nil
	}
	if each, known := l.blockRows[m.scale]; known {
		return time.Duration(each / rate * float64(time.Second)), nil
	}
	rows, blocks := 0, 0
	for b, err := range m.Rest() {
		if err != nil {
			return 0, err
		}
		_, n := bench.Written(&b)
		rows += n
		if blocks++; blocks == scanned {
			break
		}
	}
	if l.blockRows == nil {
		l.blockRows = map[float64]float64{}
	}
	l.blockRows[m.scale] = float64(rows) / float64(max(blocks, 1))
	return l.every(m, rate)
}

// oracle knows the answers on the loaded part.
func (l *Lab) oracle(m *mendoza) (*mix.Oracle, error) {
	o := mix.NewOracle()
	return o, l.aside(func() error { return o.Follow(m.Source.Blocks()) })
}
