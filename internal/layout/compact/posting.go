package compact

import (
	"context"

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// posted is an attribute as postings know it.
type posted struct {
	attr    int64
	prefix  string // of its values, when its name has no number
	kind    entity.AttributeKind
	address bool // values are addresses, stored as bytes
	unknown bool // no entity has it
}

// attribute returns how postings know an attribute, or false when they do not.
func (v *view) attribute(name string, kind entity.AttributeKind) (posted, bool) {
	switch name {
	case entity.AttrOwner:
		return posted{attr: attrOwner, kind: kind, address: true}, kind == entity.String
	case entity.AttrCreator:
		return posted{attr: attrCreator, kind: kind, address: true}, kind == entity.String
	case entity.AttrExpiration:
		return posted{attr: attrExpiration, kind: kind}, kind == entity.Numeric
	case entity.AttrLastModifiedAtBlock:
		return posted{attr: attrModified, kind: kind}, kind == entity.Numeric
	}
	if _, ours := entity.SyntheticKind(name); ours {
		return posted{}, false
	}
	names := stringName
	if kind == entity.Numeric {
		names = numberName
	}
	if id := v.names.id(names, name); id != 0 {
		return posted{attr: id, kind: kind}, true
	}
	if v.p.names-firstName+1 < maxNames {
		return posted{unknown: true, kind: kind}, true
	}
	return posted{attr: attrUnnamed, prefix: string(spelledName(names, name)), kind: kind}, true
}

// encode returns a value as it stands in the attribute's postings; ok is false
// when none can be equal to it, whole when nothing else stands there as the same.
func (a *posted) encode(value query.Value) (text string, ok, whole bool) {
	switch {
	case a.address:
		address, err := entity.ParseAddress(value.Text)
		return string(address[:]), err == nil && address.String() == value.Text, true
	case a.kind == entity.Numeric:
		return a.prefix + encodeNumber(value.Number), true, a.prefix == ""
	}
	return a.prefix + encodeText([]byte(value.Text)), true, a.prefix == "" && len(value.Text) <= wholeText
}

// searchValues finds who has one of some values.
func (v *view) searchValues(ctx context.Context, a posted, values []query.Value) (candidates, error) {
	c := candidates{ids: idSet{}, exact: true}
	if a.unknown {
		return c, nil
	}
	spans := make([]keySpan, 0, len(values))
	for _, value := range values {
		if text, ok, whole := a.encode(value); ok {
			spans = append(spans, keysOf(a.attr, text))
			c.exact = c.exact && whole
		}
	}
	_, err := v.readPostings(ctx, disjoint(spans), noLimit, nil, &c)
	return c, err
}

// readPostings adds what spans of keys have in the trees that count in the view. They
// come in order and do not overlap. It returns false when those of one are on more pages
// than a limit.
func (v *view) readPostings(ctx context.Context, spans []keySpan, limit int64, test func([]byte) (match, sure bool), c *candidates) (whole bool, err error) {
	var buf []byte
	add := func(p *posting) error {
		if len(p.adds) == 0 {
			return nil
		}
		_, value, number, err := decodeKey(p.key, buf[:0])
		if err != nil {
			return err
		}
		buf = value
		if test != nil {
			match, sure := test(value)
			c.exact = c.exact && sure
			if !match {
				return nil
			}
		}
		return c.ids.chunk(number).merge(p.adds)
	}
	whole = true
	for tree := range v.p.trees {
		if tree == pastTree && !v.past {
			continue
		}
		if whole, err = v.l.narrow(ctx, v.q, tree, &v.p.trees[tree], spans, limit, add); err != nil || !whole {
			break
		}
	}
	return whole, err
}

// searchOthers finds who has the attribute with another value than some.
func (v *view) searchOthers(ctx context.Context, a posted, values []query.Value) (candidates, error) {
	all, err := v.searchRange(ctx, a, span{exact: true})
	if err != nil || !all.exact || v.past {
		return all, err
	}
	these, err := v.searchValues(ctx, a, values)
	if err != nil || !these.exact {
		all.exact = false
		return all, err
	}
	these.negated = true
	return all.and(these), nil
}

// span is a range of encoded values.
type span struct {
	lo, hi string // from lo on, below hi; an empty hi is no bound
	none   bool   // it is empty
	exact  bool   // it holds nothing else
	test   func(value []byte) (match, sure bool)
}

// bounds returns the span of an inequality.
func bounds(e query.Compare) span {
	if e.Value.Kind == entity.Numeric {
		n := e.Value.Number
		switch e.Op {
		case query.Less:
			return span{hi: encodeNumber(n), none: n == 0, exact: true}
		case query.LessOrEqual:
			return span{hi: encodeNumber(n) + "\x00", exact: true}
		case query.Greater:
			return span{lo: encodeNumber(n) + "\x00", exact: true}
		}
		return span{lo: encodeNumber(n), exact: true}
	}
	switch text := e.Value.Text; e.Op {
	case query.Less:
		s := textSpan("", text)
		s.none = text == ""
		return s
	case query.LessOrEqual:
		return textSpan("", text+"\x00")
	case query.Greater:
		return textSpan(text+"\x00", "")
	default:
		return textSpan(text, "")
	}
}

// intersect returns what is within both spans, neither of which tests values.
func (s span) intersect(other span) span {
	s.lo = max(s.lo, other.lo)
	if s.hi == "" || other.hi != "" && other.hi < s.hi {
		s.hi = other.hi
	}
	s.none = s.none || other.none || s.hi != "" && s.lo >= s.hi
	s.exact = s.exact && other.exact
	return s
}

// textSpan returns the span of strings from lo on and below hi. Of long strings
// only a prefix keeps its place.
func textSpan(lo, hi string) span {
	s := span{lo: lo, hi: hi, exact: true}
	if len(lo) > prefixText {
		s.lo, s.exact = lo[:prefixText], false
	}
	if len(hi) > prefixText {
		s.hi, s.exact = after24(hi[:prefixText]), false
	}
	return s
}

// after24 returns the first string above everything that begins with a prefix,
// or "" when there is none.
func after24(prefix string) string {
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

// maxRange bounds the pages that are read for a range. A wider one is looked for
// by comparing versions. When a few matches are wanted, to compare the newest
// versions is faster already where a match is among some fewRange of them.
const (
	maxRange    = 2048
	minRange    = 64
	fewRange    = 64
	pageEntries = 32 // that a page has, about
)

func (v *view) rangeLimit() int64 {
	if !v.few {
		return maxRange
	}
	return min(max(v.p.live/fewRange/pageEntries, minRange), maxRange)
}

// searchRange finds who has a value within a span.
func (v *view) searchRange(ctx context.Context, a posted, s span) (candidates, error) {
	c := candidates{ids: idSet{}, exact: s.exact && a.prefix == ""}
	if a.unknown || s.none {
		c.exact = true
		return c, nil
	}
	hi := s.hi
	if hi == "" && a.prefix != "" {
		hi = after24(a.prefix)
	} else if hi != "" {
		hi = a.prefix + hi
	}
	whole, err := v.readPostings(ctx, []keySpan{keysWithin(a.attr, a.prefix+s.lo, hi)}, v.rangeLimit(), s.test, &c)
	if err != nil || whole {
		return c, err
	}
	return everything(false), nil
}
