package scaler

import "github.com/varvedb/varve/store/entity"

// Totals has the counts of a stream.
type Totals struct {
	Entities   uint64 // created
	Blocks     uint64 // empty ones included
	FirstBlock uint64
	LastBlock  uint64

	// Rows that a layout with history writes, synthetic attributes included:
	// one payload row for each version, and one row for each of its attributes.
	// ExtendBTL and ChangeOwner repeat the payload.
	AttributeRows, PayloadRows, PayloadRowBytes uint64
}

// Rows returns the total of all tables.
func (t *Totals) Rows() uint64 { return t.AttributeRows + t.PayloadRows }

// Plan returns exactly the counts of Stream with the same options. It walks
// through the lives of the entities without generating contents: less than a
// second for a million, in constant memory.
func Plan(p Profile, o Options) (Totals, error) {
	m, err := newModel(&p, o)
	if err != nil {
		return Totals{}, err
	}
	t := Totals{Entities: m.total, FirstBlock: firstBlock, LastBlock: m.last, Blocks: m.last - firstBlock + 1}
	var c cycle
	for number := range m.cycles() {
		m.computeCycle(&c, number, m.size(number), m.span(number))
		for i := range c.slots {
			m.count(&t, &c.slots[i])
		}
	}
	return t, nil
}

// count adds the part of an entity's life that lies in the stream.
func (m *model) count(t *Totals, s *slot) {
	seed := entitySeed(m.seed, s.kind, s.number)
	k := &m.kinds[s.kind]
	l := m.live(s, seed)
	sh := presence(k, seed)
	attributes := uint64(1 + sh.texts + SyntheticTexts + sh.numbers + SyntheticNumbers) // 1: "type"
	var size uint64
	for _, st := range l.steps[:l.n] {
		switch {
		case st.block > m.last:
			return
		case st.op == entity.Delete || st.op == entity.Expire:
			continue
		case st.op == entity.Create || st.op == entity.Update:
			size = k.size(seed, st.version)
		}
		t.AttributeRows += attributes
		t.PayloadRows++
		t.PayloadRowBytes += size
	}
}
