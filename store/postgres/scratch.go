package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/varvedb/varve/store/driver"
)

// scratch implements driver.Driver.Scratch: a schema, named after that of the URL, which
// must not exist.
func scratch(ctx context.Context, u *url.URL, opts driver.Options) (params map[string]string, drop func(context.Context) error, err error) {
	t, err := parseTarget(u, opts.Params)
	if err != nil {
		return nil, nil, err
	}
	if t.embedded() {
		return nil, nil, fmt.Errorf("%w: %s is a directory; name a running server", driver.ErrUnsupported, t.dir)
	}
	name := cmp.Or(t.schema, "varve")
	name = strings.ToValidUTF8(name[:min(len(name), maxIdentifier-27)], "") + "_" + strings.ToLower(rand.Text())
	schema := pgx.Identifier{name}.Sanitize()
	if err := t.run(ctx, "CREATE SCHEMA "+schema); err != nil {
		return nil, nil, err
	}
	return map[string]string{paramSchema: name}, func(ctx context.Context) error {
		if err := t.run(ctx, "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			return fmt.Errorf("drop schema %q: %w", name, err)
		}
		return nil
	}, nil
}

// run runs one statement on a new connection.
func (t target) run(ctx context.Context, text string) error {
	cfg, err := t.connConfig(nil)
	if err != nil {
		return err
	}
	delete(cfg.RuntimeParams, "application_name") // see connect
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("connect: %w", mapError(err))
	}
	_, err = conn.Exec(ctx, text)
	if err != nil {
		err = mapError(err)
	}
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}
