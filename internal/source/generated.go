package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store/entity"
)

// Generated is a stream of blocks that is determined by a few numbers. As text,
// such as "mendoza:scale=0.05,seed=1", it names a source on the command line;
// as JSON it is recorded as a store's origin.
type Generated struct {
	Model string  `json:"model"` // "mendoza" or "dc"
	Scale float64 `json:"scale"`
	Seed  uint64  `json:"seed"`
	Load  uint64  `json:"load_blocks,omitempty"` // dc: blocks of updates after the initial state
}

// models are the generated streams.
var models = []string{"mendoza", "dc"}

// String returns the text of the stream.
func (g Generated) String() string {
	s := fmt.Sprintf("%s:scale=%s,seed=%d", g.Model, strconv.FormatFloat(g.Scale, 'g', -1, 64), g.Seed)
	if g.Load > 0 {
		s += fmt.Sprintf(",load=%d", g.Load)
	}
	return s
}

// ParseGenerated parses "model:name=value,…"; ok is false when s does not have
// that form.
func ParseGenerated(s string) (g Generated, ok bool, err error) {
	model, rest, _ := strings.Cut(s, ":")
	if !slices.Contains(models, model) {
		return g, false, nil
	}
	g = Generated{Model: model, Scale: 0.001, Seed: 1}
	for _, field := range strings.FieldsFunc(rest, func(r rune) bool { return r == ',' }) {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "scale":
			g.Scale, err = strconv.ParseFloat(value, 64)
		case "seed":
			g.Seed, err = strconv.ParseUint(value, 10, 64)
		case "load":
			g.Load, err = strconv.ParseUint(value, 10, 64)
		default:
			err = fmt.Errorf("unknown parameter %q; known are scale, seed, load", name)
		}
		if errors.As(err, new(*strconv.NumError)) {
			err = fmt.Errorf("%s: want a number, got %q", name, value)
		}
		if err != nil {
			return g, true, fmt.Errorf("%s: %w", s, err)
		}
	}
	return g, true, nil
}

// origin is the text that is recorded in a store.
func (g Generated) origin() string {
	text, _ := json.Marshal(g) // plain fields cannot fail
	return string(text)
}

// Continues reports whether a stream continues another one, given their
// recorded origins: they may differ only in the number of updates.
func Continues(origin, other string) bool {
	var a, b Generated
	same := json.Unmarshal([]byte(origin), &a) == nil && json.Unmarshal([]byte(other), &b) == nil
	a.Load, b.Load = 0, 0
	return same && a == b
}

// Amount has the counts of a generated stream.
type Amount struct {
	Entities     uint64 `json:"entities"` // created
	Blocks       uint64 `json:"blocks"`
	First        uint64 `json:"first_block"`
	Last         uint64 `json:"last_block"`
	Rows         uint64 `json:"rows"` // of a layout with a row for each attribute
	PayloadBytes uint64 `json:"payload_bytes"`
}

// dcRows is the number of rows of a data-centre version: attributes, including
// synthetic ones, and payload.
const dcRows = 20

// Plan returns the counts of the stream.
func (g Generated) Plan() (Amount, error) {
	if g.Scale == 0 { // which package scaler takes for one
		return Amount{}, errors.New("scale 0: want above 0")
	}
	if g.Model == "dc" {
		m, err := g.centre()
		if err != nil {
			return Amount{}, err
		}
		c := m.Config()
		versions := m.Entities() + g.Load*uint64(c.NodeUpdates+c.WorkloadUpdates)
		last := m.FirstLoadBlock() - 1 + g.Load
		return Amount{
			Entities: m.Entities(), First: dcseed.FirstBlock, Last: last, Blocks: last - dcseed.FirstBlock + 1,
			Rows: versions * dcRows, PayloadBytes: versions * uint64(c.Payload),
		}, nil
	}
	t, err := scaler.Plan(scaler.Mendoza(), g.options(0))
	if err != nil {
		return Amount{}, err
	}
	return Amount{
		Entities: t.Entities, Blocks: t.Blocks, First: t.FirstBlock, Last: t.LastBlock,
		Rows: t.Rows(), PayloadBytes: t.PayloadRowBytes,
	}, nil
}

// options returns the options of the base profile from a block on.
func (g Generated) options(from uint64) scaler.Options {
	return scaler.Options{Scale: g.Scale, Seed: g.Seed, From: from}
}

// centre returns the model of the data centres.
func (g Generated) centre() (*dcseed.Model, error) {
	cfg, err := dcseed.ForScale(g.Scale)
	if err != nil {
		return nil, err
	}
	cfg.Seed = g.Seed
	return dcseed.New(cfg)
}

// blocks streams the blocks from a number on.
func (g Generated) blocks(from uint64) iter.Seq2[entity.Block, error] {
	if g.Model != "dc" {
		return scaler.Stream(scaler.Mendoza(), g.options(from))
	}
	m, err := g.centre()
	if err != nil {
		return func(yield func(entity.Block, error) bool) { yield(entity.Block{}, err) }
	}
	return m.Blocks(max(from, dcseed.FirstBlock), m.FirstLoadBlock()-1+g.Load)
}
