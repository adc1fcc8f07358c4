package storeurl

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
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
// does not show the password or parts of it.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"fuzz:///var/lib/x.db?durability=relaxed&checkpoint=manual&memory=64MiB", "fuzz:x.db", "sqlite.db", "nobody:x", "",
		"fuzz://user:hunter22@host/db?page_size=1&readers=0", "fuzz:x?memory=9223372036854775807G", "fuzz:x?readers=1&readers=2",
		"fuzz:x?lock_timeout=-1s&max_reader_age=1h", "fuzz:x?authToken=hunter22", "fuzz:%zz?%zz", "fuzz:x?backlog=00000000000000000001",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := Parse(raw, nil)
		if err == nil {
			require.NoError(t, checkOptions(got.Options))
			require.Positive(t, got.Options.Memory)
			require.Positive(t, got.Options.Readers)
			require.Empty(t, got.URL.RawQuery)
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
