package query

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varvedb/varve/store/entity"
)

// The rules of a comparison. The parser and Check share them; the parser adds
// the position.

// allName is the reserved name that selects everything; it is no attribute.
const allName = "$all"

var syntheticNames = []string{
	entity.AttrKey, entity.AttrOwner, entity.AttrCreator, entity.AttrExpiration,
	entity.AttrCreatedAtBlock, entity.AttrLastModifiedAtBlock,
	entity.AttrSequence, entity.AttrTxIndex, entity.AttrOpIndex,
}

func checkName(name string) error {
	if name == "" {
		return errors.New("an attribute name cannot be empty")
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("attribute name %q is not UTF-8", clip(name))
	}
	if name == allName {
		return errors.New("$all selects every entity and cannot be compared")
	}
	if _, known := entity.SyntheticKind(name); name[0] == '$' && !known {
		return fmt.Errorf("unknown attribute %q: names that start with $ are reserved, known are %s",
			clip(name), strings.Join(syntheticNames, ", "))
	}
	return nil
}

// checkType refuses a comparison that no entity can satisfy because a
// synthetic attribute has only the other type.
func checkType(name string, literal entity.AttributeKind) error {
	if kind, ok := entity.SyntheticKind(name); ok && kind != literal {
		return fmt.Errorf("%s is a %s and cannot be compared with a %s", name, kindName(kind), kindName(literal))
	}
	return nil
}

func checkPattern(name, pattern string) error {
	if kind, ok := entity.SyntheticKind(name); ok && kind != entity.String {
		return fmt.Errorf("%s is a %s and cannot match a pattern", name, kindName(kind))
	}
	if len(pattern) > MaxPattern {
		return fmt.Errorf("pattern of %d bytes, at most %d are allowed", len(pattern), MaxPattern)
	}
	if !utf8.ValidString(pattern) {
		return fmt.Errorf("pattern %q is not UTF-8", clip(pattern))
	}
	return nil
}

func kindName(kind entity.AttributeKind) string {
	if kind == entity.Numeric {
		return "number"
	}
	return "string"
}

// canonicalHex returns what s stands for when name equals it. Keys and
// addresses are stored in lower case, so text such as "0xAB", which people
// paste, can only mean "0xab" there. Other text and names stay as they are.
func canonicalHex(name, s string) string {
	if kind, ok := entity.SyntheticKind(name); !ok || kind != entity.String {
		return s
	}
	if len(s) < 2 || s[0] != '0' || s[1]|0x20 != 'x' || !isHex(s[2:]) {
		return s
	}
	return strings.ToLower(s)
}

func isHex(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return !isHexDigit(c) })
}

func isHexDigit(c rune) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// isHexLiteral reports whether s prints as an address or a key without quotes.
func isHexLiteral(s string) bool {
	return isHexLength(len(s)-2) && s[:2] == "0x" && isHex(s[2:]) && s == strings.ToLower(s)
}

// isHexLength reports whether an address or a key has that many digits.
func isHexLength(digits int) bool {
	return digits == 2*len(entity.Address{}) || digits == 2*len(entity.Key{})
}

// isPlainName reports whether name can be written without backticks.
func isPlainName(name string) bool {
	for i, c := range name {
		if i == 0 && !isNameStart(c) || !isNamePart(c) && i > 0 {
			return false
		}
	}
	return name != "" && keyword(name) == 0 && utf8.ValidString(name)
}

func isNameStart(c rune) bool { return c == '_' || c == '$' || unicode.IsLetter(c) }

func isNamePart(c rune) bool {
	return c == '_' || c == '.' || c == '-' || unicode.IsLetter(c) || unicode.IsNumber(c)
}

// wellFormed reports whether v is a well-formed literal of one type.
func (v Value) wellFormed() bool {
	switch v.Kind {
	case entity.String:
		return v.Number == 0
	case entity.Numeric:
		return v.Text == ""
	}
	return false
}
