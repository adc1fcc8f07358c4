package dcseed

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/entity"
)

// Differences tells how an entity differs from the one expected, a field or
// attribute a string, sorted; nil when it does not. Contents are compared only
// when they are meant to be there.
func Differences(want, got *entity.Entity, content bool) []string {
	var diffs []string
	differ := func(name string, want, got any) {
		diffs = append(diffs, fmt.Sprintf("%s is %v, want %v", name, got, want))
	}
	if want.ContentType != got.ContentType {
		differ("content type", want.ContentType, got.ContentType)
	}
	if content && !bytes.Equal(want.Content, got.Content) {
		diffs = append(diffs, contentDifference(want.Content, got.Content))
	}
	for _, name := range []string{entity.AttrKey, entity.AttrOwner, entity.AttrCreator} {
		w, _ := want.StringAttribute(name)
		if g, _ := got.StringAttribute(name); w != g {
			differ(name, w, g)
		}
	}
	for _, name := range []string{entity.AttrSequence, entity.AttrLastModifiedAtBlock, entity.AttrExpiration} {
		w, _ := want.NumericAttribute(name)
		if g, _ := got.NumericAttribute(name); w != g {
			differ(name, w, g)
		}
	}
	diffs = append(diffs, attributeDifferences(want.StringAttributes, got.StringAttributes)...)
	diffs = append(diffs, attributeDifferences(want.NumericAttributes, got.NumericAttributes)...)
	slices.Sort(diffs)
	return diffs
}

// contentDifference describes how contents that are not equal differ.
func contentDifference(want, got []byte) string {
	if len(want) != len(got) {
		return fmt.Sprintf("content has %d bytes, want %d", len(got), len(want))
	}
	at := 0
	for want[at] == got[at] {
		at++
	}
	return fmt.Sprintf("content differs from byte %d on", at)
}

func attributeDifferences[V comparable](want, got map[string]V) []string {
	var diffs []string
	for name, w := range want {
		g, ok := got[name]
		switch {
		case !ok:
			diffs = append(diffs, fmt.Sprintf("%s is missing, want %v", name, w))
		case g != w:
			diffs = append(diffs, fmt.Sprintf("%s is %v, want %v", name, g, w))
		}
	}
	for name, g := range got {
		if _, ok := want[name]; !ok {
			diffs = append(diffs, fmt.Sprintf("%s is %v, want none", name, g))
		}
	}
	return diffs
}
