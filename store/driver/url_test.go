package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

func TestRedact(t *testing.T) {
	for raw, want := range map[string]string{
		"sqlite:///var/a:b/x.db?readers=2":         "sqlite:///var/a:b/x.db",
		"postgres://host:5432/db":                  "postgres://host:5432/db",
		"postgres://ann@host/db":                   "postgres://ann@host/db",
		"postgres://ann:pw@host/db?password=pw":    "postgres://ann:xxxxx@host/db",
		"postgres://ann:p/w#1@2@host/db":           "postgres://ann:xxxxx@host/db",
		"postgres://ann:p?w@host/db":               "postgres://ann:xxxxx@host/db",
		"postgres://ann:pw@host/db?user=ann@host2": "postgres://ann:xxxxx@host/db",
		"libsql:https://ann:pw@host":               "libsql:https://ann:xxxxx@host",
		"libsql:https://host?authToken=pw":         "libsql:https://host",
		"ann:pw@host/db":                           "ann:xxxxx@host/db",
		"user=ann password = 'p w' host=h":         "user=ann password = xxxxx host=h",
		"":                                         "",
	} {
		require.Equal(t, want, driver.Redact(raw))
	}
}

func TestHide(t *testing.T) {
	require.Equal(t, "open /dir/postgres:/ann:xxxxx@host: none; token=xxxxx",
		driver.Hide("open /dir/postgres:/ann:pw@host: none; token=t", "--against=postgres://ann:pw@host", "x?token=t&a=b", "plain"))
}

func TestParseURLRepeatsNothing(t *testing.T) {
	for _, raw := range []string{"a://b:hush#@c", "a://b:%hush@c", "a://b:hu sh@c d", "a://b:hush/@c", ":hush", "a://b\x01hush"} {
		_, err := driver.ParseURL(raw)
		require.Error(t, err, raw)
		require.Regexp(t, "%2F|%23", err.Error(), raw) // what to write
		require.NotRegexp(t, "hu", err.Error(), raw)
	}
}
