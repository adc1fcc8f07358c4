package report

import (
	_ "embed" // the documents' figures
	"slices"
	"strings"
	"sync"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
)

// peer is what one other program, or one of the user's documents, measured of an
// experiment.
type peer struct {
	name    string
	figures []result.Record
}

//go:embed documents.txt
var documents string

// published are the figures of the user's documents.
var published = sync.OnceValues(func() ([]result.Record, error) {
	return result.ReadPeers(strings.NewReader(documents), "documents.txt")
})

// documents returns the figures of the user's documents on experiments.
func (in *Input) documents(ids ...string) []peer {
	list, err := published()
	if err != nil {
		panic(err) // a test reads them
	}
	return peersOn(list, ids...)
}

// peersOn puts the figures of each peer on experiments together.
func peersOn(list []result.Record, ids ...string) (peers []peer) {
	list = slices.DeleteFunc(slices.Clone(list), func(r result.Record) bool { return !slices.Contains(ids, r.Experiment) })
	for _, same := range runs.By(list, func(r result.Record) string { return r.Config.Get(result.PeerKey) }) {
		peers = append(peers, peer{same[0].Config.Get(result.PeerKey), same})
	}
	return peers
}

// figure is the median of what a peer has of a setting.
func (p *peer) figure(of *pivot, r *pivotRow, unit string) *float64 {
	for _, g := range of.of(r) {
		if values := p.values(unit, func(f *result.Record) bool { return f.Beside(g.Config) }); len(values) > 0 {
			v, _ := runs.Median(values)
			return &v
		}
	}
	return nil
}

func (p *peer) values(unit string, beside func(*result.Record) bool) (values []float64) {
	for i := range p.figures {
		if v, ok := p.figures[i].Metric(unit); ok && beside(&p.figures[i]) {
			values = append(values, v)
		}
	}
	return values
}

// peerTables put what others did beside what the engines do: on one experiment, or on all
// of a section. Of several settings that a line of a peer is beside, an engine's best one
// stands there.
func peerTables(in *Input, of string) []Table {
	var tables []Table
	var said []string // of peers, once
	for _, id := range in.ids() {
		if peers := peersOn(in.Results.Peers, id); len(peers) > 0 && strings.HasPrefix(id, of) {
			t := in.beside(id, peers)
			t.Notes = slices.DeleteFunc(t.Notes, func(note string) bool { return slices.Contains(said, note) })
			said = append(said, t.Notes...)
			tables = append(tables, t)
		}
	}
	if len(tables) == 0 {
		return []Table{{Notes: []string{"No peer was measured: the result set has nothing of one in " + result.PeersFile + "."}}}
	}
	return tables
}

// beside is the table of one experiment: a row for each setting and unit of a peer.
func (in *Input) beside(id string, peers []peer) Table {
	groups, _ := in.of(id)
	engines := enginesOf(groups)
	t := newGrid(heads("setting", "figure"), besideColumns(peers, engines))
	t.Caption = id + " beside peers: medians (the interval, or the range of few)."
	for i, p := range peers {
		for _, f := range p.figures {
			for _, m := range f.Metrics {
				row := []string{f.Config.Without(result.PeerKey).String(), m.Unit}
				values := p.values(m.Unit, func(o *result.Record) bool { return o.Key() == f.Key() })
				v, _ := runs.Median(values)
				*t.at(row, i) = Cell{Text: short(v), Spread: spreadOf(values, short)}
				for n, e := range engines {
					*t.at(row, len(peers)+n) = bestBeside(groups, e, &f, m.Unit)
				}
			}
		}
		t.Notes = runs.AppendNew(t.Notes, p.setup())
	}
	return *t
}

// besideColumns are columns of figures of peers and of engines.
func besideColumns(peers []peer, engines []string) (columns []Column) {
	for _, p := range peers {
		columns = append(columns, Column{Head: p.name, Numeric: true})
	}
	for _, e := range engines {
		columns = append(columns, Column{Head: e, Engine: e, Numeric: true})
	}
	return columns
}

// bestBeside is an engine's best figure of the settings that a peer's is beside.
func bestBeside(groups []*runs.Group, engine string, f *result.Record, unit string) (best Cell) {
	for _, g := range runs.Where(groups, func(g *runs.Group) bool { return g.Get("engine") == engine && f.Beside(g.Config) }) {
		c := briefCell(g, runs.Measure{Unit: unit})
		if best.Value == nil || c.Value != nil && float64(result.Better(unit))*(*c.Value-*best.Value) > 0 {
			best = c
		}
	}
	return best
}

// setup says what a peer is, how it was asked and when.
func (p *peer) setup() string {
	var said []string
	for _, note := range p.figures[0].Notes {
		_, text, _ := strings.Cut(note, ": ")
		said = append(said, text)
	}
	return "- " + p.name + ": " + strings.Join(said, "; ") + "."
}
