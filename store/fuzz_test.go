package store

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

func init() {
	driver.Register(driver.Driver{
		Name:   "fuzz",
		Params: map[string]string{"page_size": "a number"},
		Open: func(context.Context, *url.URL, driver.Options) (driver.Engine, error) {
			return nil, driver.ErrUnsupported
		},
	})
}

// FuzzURL: a URL gives options that pass the check of options, or an error that
// does not show the password or what a parameter may hold of one.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"fuzz:///var/lib/x.db?durability=relaxed&checkpoint=manual&memory=64MiB", "fuzz:x.db", "sqlite.db", "nobody:x", "",
		"fuzz://user:hunter22@host/db?page_size=1&readers=0", "fuzz:x?memory=9223372036854775807G", "fuzz:x?readers=1&readers=2",
		"fuzz:x?lock_timeout=-1s&max_reader_age=1h", "fuzz:x?authToken=hunter22", "fuzz:%zz?%zz", "fuzz:x?backlog=00000000000000000001",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := parseURL(raw, nil)
		if err == nil {
			require.NoError(t, checkOptions(got.options))
			require.Positive(t, got.options.Memory)
			require.Positive(t, got.options.Readers)
			require.Empty(t, got.url.RawQuery)
			return
		}
		u, parseErr := url.Parse(raw)
		if parseErr != nil {
			return
		}
		secret, _ := u.User.Password()
		if len(secret) >= 6 && u.Scheme != "" && strings.Count(raw, secret) == 1 {
			require.NotContains(t, err.Error(), secret)
		}
	})
}

// FuzzCursor: a cursor that somebody made up is refused, or is one that a page may
// begin after.
func FuzzCursor(f *testing.F) {
	key := entity.Key{1, 31: 2}
	for _, o := range cursorOrders {
		s := &Snapshot{at: 7}
		c, err := s.Cursor(&entity.Entity{Key: key, Sequence: 7 << 32, StringAttributes: map[string]string{"a": "é\x00"}}, &QueryOptions{Order: o})
		require.NoError(f, err)
		f.Add(string(c))
	}
	f.Add("")
	f.Add("e30")
	f.Fuzz(func(t *testing.T, text string) {
		for _, o := range cursorOrders {
			order, err := checkOrder(o)
			require.NoError(t, err)
			state, err := Cursor(text).decode(order)
			if err != nil {
				require.ErrorIs(t, err, ErrInvalid)
				continue
			}
			at := state.position()
			require.Len(t, at.Values, len(order))
			for i, o := range order {
				require.Equal(t, o.Kind, at.Values[i].Value.Kind)
			}
			require.Len(t, state.Digest, digestPrefix)
		}
	})
}

var cursorOrders = [][]Order{
	nil, {{Name: "a", Kind: entity.String}}, {{Name: "a", Kind: entity.Numeric, Desc: true}}, {{Name: entity.AttrExpiration}},
	{{Name: "a", Kind: entity.String, Desc: true}, {Name: "a", Kind: entity.Numeric}, {Name: entity.AttrKey}},
}
