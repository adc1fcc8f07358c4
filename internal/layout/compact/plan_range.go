package compact

import (
	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// posted is an attribute as postings know it.
type posted struct {
	attr    uint32
	prefix  string // of its values, when its name has no number
	kind    entity.AttributeKind
	address bool // values are addresses, stored as bytes
	unknown bool // no entity has it
}

// synthetic attributes have postings of their own; others of ours have none.
var synthetics = map[string]posted{
	entity.AttrOwner:               {attr: attrOwner, kind: entity.String, address: true},
	entity.AttrCreator:             {attr: attrCreator, kind: entity.String, address: true},
	entity.AttrExpiration:          {attr: attrExpiration, kind: entity.Numeric},
	entity.AttrLastModifiedAtBlock: {attr: attrModified, kind: entity.Numeric},
}

// attribute returns how postings know an attribute, or false when they do not.
func (v *view) attribute(name string, kind entity.AttributeKind) (posted, bool) {
	if a, ok := synthetics[name]; ok {
		return a, kind == a.kind
	}
	if _, ours := entity.SyntheticKind(name); ours {
		return posted{}, false
	}
	names := stringName
	if kind == entity.Numeric {
		names = numberName
	}
	if id := v.names.id(names, name); id != 0 {
		return posted{attr: uint32(id), kind: kind}, true
	}
	if v.p.names-firstName+1 < maxNames {
		return posted{unknown: true, kind: kind}, true
	}
	return posted{attr: attrUnnamed, prefix: string(spelledName(names, name)), kind: kind}, true
}

// terms returns the terms of values, and whether nothing else has the same. Values that
// none can be equal to have no term.
func (a *posted) terms(values []query.Value) (terms []lsm.Term, exact bool) {
	exact = a.prefix == ""
	if a.unknown {
		return nil, true
	}
	terms = make([]lsm.Term, 0, len(values))
	for _, value := range values {
		t := lsm.Term{Space: a.attr}
		switch {
		case a.address:
			address, err := entity.ParseAddress(value.Text)
			if err != nil || address.String() != value.Text {
				continue
			}
			t.Value = string(address[:])
		case a.kind == entity.Numeric:
			t.Value = a.prefix + encodeNumber(value.Number)
		default:
			t.Value = a.prefix + encodeText([]byte(value.Text))
			exact = exact && len(value.Text) <= wholeText
		}
		terms = append(terms, t)
	}
	return terms, exact
}

// spans returns where the values of a range lie, those of the past too if they are wanted.
func (a *posted) spans(r valueRange, withPast bool) []lsm.Span {
	hi := a.prefix + r.hi
	if r.hi == "" {
		hi = afterPrefix(a.prefix)
	}
	spans := []lsm.Span{lsm.Within(a.attr, a.prefix+r.lo, hi)}
	if withPast {
		spans = append(spans, lsm.Within(a.attr|past, a.prefix+r.lo, hi))
	}
	return spans
}

// valueRange is a range of encoded values.
type valueRange struct {
	lo, hi string // from lo on, below hi; an empty hi is no bound
	none   bool   // it is empty
	exact  bool   // it holds nothing else
	test   func(value []byte) (match, sure bool)
}

// bounds returns the range of an inequality.
func bounds(e query.Compare) valueRange {
	value := e.Value.Text
	if e.Value.Kind == entity.Numeric {
		value = encodeNumber(e.Value.Number)
	}
	switch next := value + "\x00"; e.Op {
	case query.Less:
		r := textRange("", value)
		r.none = value == ""
		return r
	case query.LessOrEqual:
		return textRange("", next)
	case query.Greater:
		return textRange(next, "")
	default:
		return textRange(value, "")
	}
}

// intersect returns what is within both ranges, neither of which tests values.
func (r valueRange) intersect(other valueRange) valueRange {
	r.lo = max(r.lo, other.lo)
	if r.hi == "" || other.hi != "" && other.hi < r.hi {
		r.hi = other.hi
	}
	r.none = r.none || other.none || r.hi != "" && r.lo >= r.hi
	r.exact = r.exact && other.exact
	return r
}

// textRange returns the range of strings from lo on and below hi. Of long strings only a prefix keeps its place.
func textRange(lo, hi string) valueRange {
	r := valueRange{lo: lo, hi: hi, exact: true}
	if len(lo) > prefixText {
		r.lo, r.exact = lo[:prefixText], false
	}
	if len(hi) > prefixText {
		r.hi, r.exact = afterPrefix(hi[:prefixText]), false
	}
	return r
}

// afterPrefix returns the first string above everything that begins with a prefix, or "" when there is none.
func afterPrefix(prefix string) string {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return string(b[:i+1])
		}
	}
	return ""
}

// noLimit is a limit that no result reaches and every engine takes.
const noLimit = 1 << 60
