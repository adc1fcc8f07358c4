package eventlog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/store/event"
)

func TestEncodeTag(t *testing.T) {
	for _, c := range []struct{ key, value, text string }{
		{"course", "c1", "course=c1"},
		{"course", "", "course="},
		{"a=b", "c", `a\eb=c`},
		{"a", "b=c", "a=b=c"},
		{`a\`, `\=`, `a\\=\\=`},
		{"\x00", "\x1f\x00", `\0=\s\0`},
		{`\e`, `\s`, `\\e=\\s`},
	} {
		tag := event.NewTag(c.key, c.value)
		require.Equal(t, c.text, encodeTag(tag))
		got, err := decodeTag(c.text)
		require.NoError(t, err)
		require.Equal(t, tag, got)
	}
}

// drawTag draws tags of the characters that are easy to mix up.
func drawTag() *rapid.Generator[event.Tag] {
	part := rapid.StringOf(rapid.SampledFrom([]rune{'a', '=', '\\', 'e', 's', '0', 0x1f, 0, 'ü', ' '}))
	return rapid.Custom(func(rt *rapid.T) event.Tag {
		return event.NewTag("k"+part.Draw(rt, "key"), part.Draw(rt, "value"))
	})
}

// TestTags: lists of tags are read back as they were written, no two tags have
// one text, no tag has the text of a type, and no text has a character with a
// meaning for the store or an engine.
func TestTags(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tags := rapid.SliceOfDistinct(drawTag(), func(t event.Tag) event.Tag { return t }).Draw(rt, "tags")
		records := Prepare([]event.Event{{Type: "T", Tags: tags}})
		got, err := decodeTags(records[0].tagList())
		if err != nil || !(len(tags) == 0 && len(got) == 0) && !cmp.Equal(tags, got) {
			rt.Fatalf("want %q, got %q, %v", tags, got, err)
		}
		seen := map[string]bool{}
		for _, text := range records[0].tags {
			if seen[text] || strings.ContainsAny(text, separator+"\x00") || text[0] == typeMark {
				rt.Fatalf("text %q among %q", text, records[0].tags)
			}
			seen[text] = true
		}
	})
}

func TestDamagedTags(t *testing.T) {
	for _, text := range []string{"a", "=b", "a=b" + separator, separator + "a=b", "a=b" + separator + separator + "c=d"} {
		_, err := decodeTags(text)
		require.Error(t, err, "%q", text)
	}
}

func FuzzDecodeTags(f *testing.F) {
	for _, text := range []string{"", "a=b", `a\eb=c` + separator + "d=", `\`, `=\`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tags, err := decodeTags(text)
		if err != nil {
			return
		}
		records := Prepare([]event.Event{{Type: "T", Tags: tags}})
		again, err := decodeTags(records[0].tagList())
		require.NoError(t, err)
		require.Equal(t, tags, again)
	})
}

func TestCompile(t *testing.T) {
	items := Compile(event.All())
	require.Len(t, items, 1)
	require.True(t, items[0].all())
	items = Compile(event.Of("A", "B", "A", "C", "B").Or(event.Typed("A", event.NewTag("a=", "b"))))
	require.Equal(t, []string{"A", "B", "C"}, items[0].types)
	require.Equal(t, []string{`a\e=b`}, items[1].tags)
	require.True(t, items[1].matches("A", []string{"x=y", `a\e=b`}))
	require.False(t, items[1].matches("B", []string{`a\e=b`}))
	require.False(t, items[1].matches("A", []string{"a==b"}))
}
