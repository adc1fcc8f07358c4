package scaler

import "github.com/varvedb/varve/store/entity"

// Totals is what a stream amounts to.
type Totals struct {
	Entities   uint64 // created
	Blocks     uint64 // empty ones included
	Batches    uint64 // blocks that create entities
	FirstBlock uint64
	LastBlock  uint64
	Ops        [entity.Expire + 1]uint64 // by entity.Kind
	Live       uint64                    // entities visible at LastBlock

	// Rows that a layout with history writes, the synthetic attributes
	// included: one payload a version, and one row an attribute of it.
	TextRows, NumberRows, PayloadRows uint64

	// Bytes of the payloads that Create and Update carry; and of the payload
	// rows, in which ExtendBTL and ChangeOwner repeat them.
	PayloadBytes, PayloadRowBytes uint64
}

// Rows returns the rows of all three tables.
func (t *Totals) Rows() uint64 { return t.TextRows + t.NumberRows + t.PayloadRows }

// Plan returns exactly what Stream generates with the same options, by going
// through the lives of the entities without their contents, which takes less than
// a second for a million, in constant memory.
func Plan(p Profile, o Options) (Totals, error) {
	m, err := newModel(&p, o)
	if err != nil {
		return Totals{}, err
	}
	t := Totals{Entities: m.total, FirstBlock: firstBlock, LastBlock: m.last, Blocks: m.last - firstBlock + 1}
	var c cycle
	for number := range m.cycles() {
		m.lay(&c, number, m.size(number), m.span(number))
		t.Batches += uint64(len(c.batches))
		for i := range c.slots {
			m.count(&t, &c.slots[i])
		}
	}
	return t, nil
}

// count adds the life of an entity, as far as it lies in the stream.
func (m *model) count(t *Totals, s *slot) {
	seed := entitySeed(m.seed, s.kind, s.number)
	k := &m.kinds[s.kind]
	l := m.live(s, seed)
	sh := presence(k, seed)
	var versions, size uint64
	live := uint64(1)
	for _, st := range l.steps[:l.n] {
		if st.block > m.last {
			break
		}
		t.Ops[st.op]++
		switch st.op {
		case entity.Delete, entity.Expire:
			live = 0
			continue
		case entity.Create, entity.Update:
			size = k.size(seed, st.version)
			t.PayloadBytes += size
		}
		versions++
		t.PayloadRowBytes += size
	}
	t.Live += live
	t.PayloadRows += versions
	t.TextRows += versions * uint64(sh.texts+1+SyntheticTexts) // 1: "type"
	t.NumberRows += versions * uint64(sh.numbers+SyntheticNumbers)
}
