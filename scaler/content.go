package scaler

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/varvedb/varve/store/entity"
)

// write sets the payload and attributes of a Create or an Update. Each value
// has a separate random sequence, so that an Update can repeat the constant
// values without remembering them.
func (m *model) write(op *entity.Op, s *slot, seed uint64, st *step) {
	k := &m.kinds[s.kind]
	p := presence(k, seed)
	op.StringAttributes = make(map[string]string, p.texts+1)
	op.StringAttributes["type"] = k.Name
	for i := range k.texts {
		if p.missing&(1<<i) == 0 {
			op.StringAttributes[k.texts[i].Name] = m.text(&k.texts[i], i, s, seed, st.version)
		}
	}
	op.NumericAttributes = make(map[string]uint64, p.numbers)
	for i := range k.Numbers {
		if p.missing&(1<<(32+i)) == 0 {
			op.NumericAttributes[k.Numbers[i].Name] = number(&k.Numbers[i], i, s, seed, st)
		}
	}
	r := rng{derive(seed, forContentType)}
	op.ContentType = choose(&r, k.Payload.Types)
	op.Content = content(k.Payload.Form, k.size(seed, st.version), derive(seed+st.version, forContent))
}

// shape has the attributes that an entity has in all its versions.
type shape struct {
	missing        uint64 // bit set of missing attributes: texts from bit 0 on, numbers from bit 32 on
	texts, numbers int    // without "type"
}

func presence(k *kind, seed uint64) shape {
	sh := shape{texts: len(k.Texts), numbers: len(k.Numbers)}
	r := rng{derive(seed, forPresence)}
	for i := range k.Texts {
		if n := k.Texts[i].Missing; n > 0 && r.chance(n) {
			sh.missing |= 1 << i
			sh.texts--
		}
	}
	for i := range k.Numbers {
		if n := k.Numbers[i].Missing; n > 0 && r.chance(n) {
			sh.missing |= 1 << (32 + i)
			sh.numbers--
		}
	}
	return sh
}

// size returns the size of a version's payload.
func (k *kind) size(seed, version uint64) uint64 {
	r := rng{derive(seed+version, forSize)}
	return k.Payload.Size.draw(&r)
}

func (m *model) text(t *text, i int, s *slot, seed, version uint64) string {
	r := rng{derive(seed, forText+uint64(i))}
	switch t.Source {
	case OneOf:
		if version > 0 && t.Later != nil {
			return choose(&r, t.Later)
		}
		return choose(&r, t.Values)
	case Serial:
		return numbered(t.Text, s.number+1)
	case Next:
		if s.number == s.last {
			return ""
		}
		return numbered(m.kinds[s.kind].id, s.number+2)
	case Group:
		return numbered(t.Text, s.first+1)
	case Pooled:
		return numbered(t.Text, r.below(t.Pool)+1)
	case ID:
		return numbered(m.kinds[t.of].id, m.refer(t, s, &r)+1)
	case Key:
		return entityKey(entitySeed(m.seed, t.of, m.refer(t, s, &r))).String()
	case Hex:
		return hexDigits(&r, t.Length)
	default:
		return words(&r, t.Length)
	}
}

// refer chooses the number of an entity that was created earlier: in a previous
// cycle or, during the first cycle, at its beginning.
func (m *model) refer(t *text, s *slot, r *rng) uint64 {
	exist := s.cycle * m.kinds[t.of].Count
	if s.cycle == 0 {
		exist = m.early[t.of]
	}
	window := exist
	if t.Window > 0 {
		window = min(t.Window, exist)
		if r.chance(t.Hot) {
			return (exist - 1) / t.Window * t.Window
		}
	}
	return exist - 1 - r.below(window)
}

// numbered returns the prefix and the number, padded to Digits.
func numbered(t *Text, n uint64) string { return fmt.Sprintf("%s%0*d", t.Prefix, t.Digits, n) }

func hexDigits(r *rng, n int) string {
	buf := make([]byte, (n+15)/16*16)
	var raw [8]byte
	for i := 0; i < n; i += 16 {
		binary.BigEndian.PutUint64(raw[:], r.next())
		hex.Encode(buf[i:], raw[:])
	}
	return string(buf[:n])
}

func words(r *rng, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = vocabulary[r.below(uint64(len(vocabulary)))]
	}
	return strings.Join(list, " ")
}

func number(n *Number, i int, s *slot, seed uint64, st *step) uint64 {
	switch n.Source {
	case Clock:
		return epoch + BlockSeconds*st.block
	case Position:
		return s.number - s.first
	}
	if n.Varies {
		seed += st.version
	}
	r := rng{derive(seed, forNumber+uint64(i))}
	return n.Values.draw(&r)
}
