package service_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/store"

	"github.com/varvedb/varve/store/entity"
	_ "github.com/varvedb/varve/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, url string) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// fresh opens a new store.
func fresh(t testing.TB) *store.DB {
	t.Helper()
	return open(t, "sqlite:"+filepath.Join(t.TempDir(), "varve.db")+"?durability=relaxed")
}

func start(t testing.TB, db *store.DB, o service.Options) *service.Service {
	t.Helper()
	s, err := service.New(context.Background(), db, o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// keyring is made of keys that consist of one byte.
func keyring(t testing.TB, keys ...byte) *seal.Keyring {
	t.Helper()
	var list [][]byte
	for _, b := range keys {
		key := make([]byte, seal.KeySize)
		for i := range key {
			key[i] = b
		}
		list = append(list, key)
	}
	r, err := seal.New(list...)
	require.NoError(t, err)
	return r
}

func key(n int) (k entity.Key) {
	copy(k[:], fmt.Sprintf("key %d", n))
	return k
}

func put(n int, payload string) *service.Put {
	return &service.Put{
		Key: key(n), ContentType: "text/plain", Payload: []byte(payload),
		StringAttributes:  map[string]string{"type": "test", "payload": payload},
		NumericAttributes: map[string]uint64{"n": uint64(n)},
	}
}
