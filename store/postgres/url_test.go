package postgres

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// parseURL parses a URL with its query.
func parseURL(t *testing.T, rawURL string) (target, error) {
	t.Helper()
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	params := map[string]string{}
	for name, values := range u.Query() {
		params[name] = values[0]
	}
	u.RawQuery = ""
	return parseTarget(u, params)
}

func TestTarget(t *testing.T) {
	for rawURL, want := range map[string]target{
		"postgres:///var/lib/node/pg":            {dir: "/var/lib/node/pg"},
		"postgres:pg":                            {dir: "pg"},
		"postgres:./a%20b?schema=s":              {dir: "./a b", schema: "s"},
		"postgres:pg?bin_dir=/usr/lib/pg/18/bin": {dir: "pg", binDir: "/usr/lib/pg/18/bin"},
		"postgres://h":                           {settings: map[string]string{"host": "h", "application_name": "varve"}},
		"postgres://u:p@h:5433/db?schema=S&sslmode=verify-full": {
			schema: "S", password: "p",
			settings: map[string]string{"host": "h", "port": "5433", "user": "u", "dbname": "db", "sslmode": "verify-full", "application_name": "varve"},
		},
		"postgres://u@/db?host=/run/postgresql&application_name=x": {
			settings: map[string]string{"host": "/run/postgresql", "user": "u", "dbname": "db", "application_name": "x"},
		},
		"postgres:///db?host=a,b&port=1,2&target_session_attrs=read-write": {
			settings: map[string]string{"host": "a,b", "port": "1,2", "dbname": "db", "target_session_attrs": "read-write", "application_name": "varve"},
		},
		"postgres://[::1]:5432/": {settings: map[string]string{"host": "::1", "port": "5432", "application_name": "varve"}},
	} {
		got, err := parseURL(t, rawURL)
		require.NoError(t, err, rawURL)
		require.Equal(t, want, got, rawURL)
		require.Equal(t, want.dir != "", got.embedded())
	}
}

func TestTargetErrors(t *testing.T) {
	for rawURL, want := range map[string]string{
		"postgres://":                          "no path",
		"postgres:///":                         "no path",
		"postgres://u:secret@/db":              "add ?host=",
		"postgres:///dir?sslmode=disable":      "parameter sslmode is for a running server",
		"postgres:///dir?cache=1":              `parameter cache: unknown; known are application_name, bin_dir`,
		"postgres://u:secret@h/db?colour=red":  "parameter colour: unknown",
		"postgres://u:secret@h/db?password=x":  "parameter password: unknown",
		"postgres://u:secret@h/db?bin_dir=/x":  "parameter bin_dir is for a server that Varve starts",
		"postgres://u:secret@h/db?host=g":      "host is given in the address and as a parameter",
		"postgres://u:secret@h:1/db?port=2":    "port is given in the address and as a parameter",
		"postgres:dir?host=h":                  "parameter host is for a running server, and the URL names a directory",
		"postgres://h/db?schema=" + longName(): "at most 63 bytes",
		"postgres://h/db?schema=$user":         "cannot search it",
		"postgres://h/db?schema=%ff":           "UTF-8",
	} {
		_, err := parseURL(t, rawURL)
		require.ErrorContains(t, err, want, rawURL)
		require.NotContains(t, err.Error(), "secret", rawURL)
	}
}

func longName() string { return strings.Repeat("s", maxIdentifier+1) }

// TestPassword checks that a password reaches the connection as it is and is in no error.
func TestPassword(t *testing.T) {
	for _, password := range []string{"secret", "se'cret", `se\cret`, "se cret", "pass=word secret"} {
		u := &url.URL{Scheme: "postgres", User: url.UserPassword("u", password), Host: "localhost:1", Path: "/db"}
		got, err := parseTarget(u, nil)
		require.NoError(t, err)
		cfg, err := got.connConfig(nil)
		require.NoError(t, err)
		require.Equal(t, password, cfg.Password)

		for _, params := range []map[string]string{nil, {"sslmode": "sometimes"}, {"port": "x"}, {"connect_timeout": "soon"}} {
			if params["port"] != "" {
				u.Host = "localhost"
			}
			_, err = open(t.Context(), u, driver.Options{Params: params}.WithDefaults())
			require.Error(t, err)
			require.NotContains(t, err.Error(), "cret")
		}
	}
}

func TestConnConfig(t *testing.T) {
	t.Setenv("PGUSER", "someone")
	got, err := parseURL(t, `postgres://localhost:1/db?application_name=it%27s\&sslmode=disable`)
	require.NoError(t, err)
	cfg, err := got.connConfig(nil)
	require.NoError(t, err)
	require.Equal(t, `it's\`, cfg.RuntimeParams["application_name"])
	require.Equal(t, "someone", cfg.User, "the environment says what the URL does not")
	require.Equal(t, connectTimeout, cfg.ConnectTimeout)
	require.Nil(t, cfg.TLSConfig)

	got, err = parseURL(t, "postgres://localhost:1/db?sslmode=verify-full&connect_timeout=3")
	require.NoError(t, err)
	cfg, err = got.connConfig(nil)
	require.NoError(t, err)
	require.Equal(t, "localhost", cfg.TLSConfig.ServerName)
	require.Equal(t, "3s", cfg.ConnectTimeout.String())
}

// FuzzTarget: a URL names a directory, or a server without its password among the
// settings, or gives an error that does not show it.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{
		"postgres:///var/lib/node/pg", "postgres:pg?schema=s", "postgres://u:hunter22@h:5432/db?sslmode=require",
		"postgres:///db?host=/run/postgresql", "postgres://u:hunter22@/x", "postgres://h,i:1/db?port=2", "postgres://h/?bin_dir=/x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "postgres" {
			t.Skip("not a URL of Postgres")
		}
		params := map[string]string{}
		for name, values := range u.Query() {
			params[name] = values[0]
		}
		u.RawQuery = ""
		got, err := parseTarget(u, params)
		secret, _ := u.User.Password()
		once := len(secret) >= 6 && strings.Count(raw, secret) == 1
		if err != nil {
			if once {
				require.NotContains(t, err.Error(), secret)
			}
			return
		}
		if got.embedded() {
			require.Empty(t, got.settings)
			return
		}
		require.NotContains(t, got.settings, "password")
		for _, value := range got.settings {
			if once {
				require.NotContains(t, value, secret)
			}
		}
	})
}
