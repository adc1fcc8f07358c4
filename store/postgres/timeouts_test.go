package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
)

// bounded makes every row of a user's table an error for whoever may be ended by a
// timeout. Only a superuser is exempt.
const bounded = `CREATE OR REPLACE FUNCTION unbounded() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	IF current_setting('statement_timeout') <> '0' OR current_setting('idle_in_transaction_session_timeout') <> '0'
		OR current_setting('transaction_timeout') <> '0' THEN
		RAISE EXCEPTION 'a timeout ends this';
	END IF;
	RETURN true;
END $$;
DO $$ DECLARE t text; BEGIN
	FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename NOT IN ('varve_meta', 'varve_blocks') LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
		EXECUTE format('CREATE POLICY p ON %I USING (unbounded()) WITH CHECK (unbounded())', t);
	END LOOP;
END $$`

// hastyURL returns the URL of a new schema for a user whom the server gives little time.
func hastyURL(t *testing.T) (admin, user string) {
	admin = pgtest.NewURL(t)
	pgtest.Exec(t, admin, `DO $$ BEGIN
	CREATE ROLE hasty LOGIN;
EXCEPTION WHEN duplicate_object THEN END $$;
ALTER ROLE hasty SET statement_timeout = '1h';
ALTER ROLE hasty SET idle_in_transaction_session_timeout = '1h';
ALTER ROLE hasty SET transaction_timeout = '1h';
DO $$ BEGIN EXECUTE format('ALTER SCHEMA %I OWNER TO hasty', current_schema()); END $$`)
	u, err := url.Parse(admin)
	require.NoError(t, err)
	u.User = url.User("hasty")
	return admin, u.String()
}

func keyOf(n uint64) entity.Key {
	var k entity.Key
	binary.BigEndian.PutUint64(k[:], n)
	return k
}

// blockOf makes one entity, and changes the one before.
func blockOf(n uint64) entity.Block {
	content := bytes.Repeat([]byte{byte(n)}, 3000)
	b := entity.Block{Number: n, Ops: []entity.Op{{Kind: entity.Create, Key: keyOf(n), BTL: 1000, Content: content, NumericAttributes: map[string]uint64{"n": n}}}}
	if n > 1 {
		b.Ops = append(b.Ops, entity.Op{Kind: entity.Update, TxIndex: 1, Key: keyOf(n - 1), BTL: 1000, Content: content})
	}
	return b
}

func blocks(from, to uint64) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		for n := from; n <= to; n++ {
			if !yield(blockOf(n), nil) {
				return
			}
		}
	}
}

// TestTimeoutsOfRole: what takes as long as there is data is not ended by a timeout of the
// role, and all else is.
func TestTimeoutsOfRole(t *testing.T) {
	for _, layout := range []string{"compact", "arkiv-analyzed"} {
		t.Run(layout, func(t *testing.T) {
			admin, hasty := hastyURL(t)
			db, err := store.Open(t.Context(), hasty, nil)
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			ents, err := db.Entities(t.Context(), &store.EntityOptions{Layout: layout, Backlog: 2})
			require.NoError(t, err)
			evs, err := db.Events(t.Context(), &store.EventOptions{IndexEvery: 2})
			require.NoError(t, err)
			pgtest.Exec(t, admin, bounded)

			_, err = ents.Load(t.Context(), blocks(1, 20), &store.LoadOptions{Changes: 3})
			require.NoError(t, err)
			_, err = ents.Load(t.Context(), blocks(1, 20), nil) // compared with the stored blocks
			require.NoError(t, err)
			require.NoError(t, ents.Flush(t.Context()))
			_, err = ents.Verify(t.Context())
			require.NoError(t, err)
			_, err = ents.Summary(t.Context())
			require.NoError(t, err)
			for _, err := range ents.History(t.Context()) {
				require.NoError(t, err)
			}
			require.NoError(t, ents.Rewind(t.Context(), 18))
			require.NoError(t, ents.Prune(t.Context(), 3))

			_, err = evs.Import(t.Context(), func(yield func(event.Sequenced, error) bool) {
				for n := range uint64(10) {
					if !yield(event.Sequenced{Position: n + 1, Event: event.Event{Type: "A", Tags: []event.Tag{{Key: "k", Value: fmt.Sprint(n)}}}}, nil) {
						return
					}
				}
			}, &store.EventImportOptions{Batch: 3})
			require.NoError(t, err)
			_, err = evs.Summary(t.Context())
			require.NoError(t, err)
			_, err = db.Check(t.Context(), nil)
			require.NoError(t, err)
			var backup bytes.Buffer
			_, err = db.Backup(t.Context(), &backup, nil)
			require.NoError(t, err)

			_, err = ents.Apply(t.Context(), blockOf(19))
			require.ErrorContains(t, err, "a timeout ends this")
			snap, err := ents.At(t.Context(), store.Head)
			if err == nil {
				_, err = snap.Get(t.Context(), keyOf(18))
				err = errors.Join(err, snap.Close())
			}
			require.ErrorContains(t, err, "a timeout ends this")
		})
	}
}
