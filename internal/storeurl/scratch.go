package storeurl

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/store/driver"
)

// Scratch creates an empty database at the server of a URL, for measurements
// and tests. It returns the database's URL, with all settings of the given one,
// and a function that removes the database with its contents. It changes
// nothing else on the server. It fails with driver.ErrUnsupported on engines
// without servers.
func Scratch(ctx context.Context, rawURL string) (own string, drop func(ctx context.Context) error, err error) {
	t, err := Parse(rawURL, nil)
	if err != nil {
		return "", nil, err
	}
	fail := func(err error) (string, func(context.Context) error, error) {
		return "", nil, fmt.Errorf("make a database at %s: %w", driver.Redact(rawURL), err)
	}
	if t.Driver.Scratch == nil {
		return fail(fmt.Errorf("%w: engine %s has no servers", driver.ErrUnsupported, t.Driver.Name))
	}
	params, drop, err := t.Driver.Scratch(ctx, t.URL, t.Options)
	if err != nil {
		return fail(err)
	}
	u, err := driver.ParseURL(rawURL)
	if err != nil {
		return fail(err)
	}
	q := u.Query()
	for name, value := range params {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return u.String(), drop, nil
}
