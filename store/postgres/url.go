package postgres

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/varvedb/varve/internal/pgembed"
	"github.com/varvedb/varve/store/driver"
)

// The parameters that are not passed to the server's connection as they are.
const (
	paramSchema = "schema"
	paramBinDir = "bin_dir"
	paramHost   = "host"
	paramPort   = "port"
)

// connParams are the parameters of a connection to a running server. The
// password is not among them: it belongs before the host, where every program
// that prints URLs knows to leave it out.
var connParams = map[string]string{
	paramHost:              "host of a running server or directory of its Unix socket; several separated by commas are tried in order (default that of the URL)",
	paramPort:              "port, or one for each host (default 5432)",
	"user":                 "user, when not given before the host (default the system's user)",
	"passfile":             "file of passwords (default ~/.pgpass)",
	"sslmode":              "disable, allow, prefer, require, verify-ca or verify-full (default prefer)",
	"sslrootcert":          "file of the certificate authorities to trust, or \"system\" (default none)",
	"sslcert":              "file of this client's certificate (default none)",
	"sslkey":               "file of this client's key (default none)",
	"connect_timeout":      "seconds to wait for a connection (default 10)",
	"application_name":     "name shown in the server's statistics (default varve)",
	"target_session_attrs": "which of several hosts to take: any, read-write, read-only, primary, standby or prefer-standby (default any)",
}

// params documents all URL parameters.
var params = func() map[string]string {
	all := map[string]string{
		paramSchema: "schema to work in, made when it is missing (default the session's current one)",
		paramCitus:  "true on a Citus coordinator: the tables of a new store are spread over the workers, and such a store is opened (default false)",
		paramBinDir: "directory of an installed PostgreSQL " + pgembed.Major + "'s initdb and postgres, for an embedded server (default they are fetched once)",
	}
	maps.Copy(all, connParams)
	return all
}()

// target is the meaning of a URL: a directory, or a server.
type target struct {
	dir    string // of an embedded server
	binDir string
	schema string
	citus  bool

	settings map[string]string // of the connection, without the password
	password string
}

func (t target) embedded() bool { return t.dir != "" }

// maxIdentifier is the longest name of a schema, in bytes. Postgres cuts longer
// ones.
const maxIdentifier = 63

func parseTarget(u *url.URL, params map[string]string) (target, error) {
	t := target{schema: params[paramSchema], binDir: params[paramBinDir]}
	if len(t.schema) > maxIdentifier || strings.ContainsRune(t.schema, 0) || !utf8.ValidString(t.schema) {
		return t, fmt.Errorf("schema %q: a name is UTF-8 of at most %d bytes, without NUL", t.schema, maxIdentifier)
	}
	if t.schema == "$user" { // which search_path takes for the user's name, also in quotes
		return t, fmt.Errorf("schema %q: the server cannot search it; give the schema another name", t.schema)
	}
	switch params[paramCitus] {
	case "", "false":
	case "true":
		t.citus = true
	default:
		return t, fmt.Errorf("parameter %s: want true or false, got %q", paramCitus, params[paramCitus])
	}
	if u.Host == "" && params[paramHost] == "" {
		return t, t.parseDirectory(u, params)
	}
	return t, t.parseServer(u, params)
}

func (t *target) parseDirectory(u *url.URL, params map[string]string) (err error) {
	if u.User != nil {
		return errors.New("a user but no host; for a Unix socket add ?host=/path/to/its/directory")
	}
	if t.dir, err = driver.FilePath(u); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if _, conn := connParams[name]; conn || name == paramCitus {
			return forServer(name)
		}
		if name != paramSchema && name != paramBinDir {
			return unknownParam(name)
		}
	}
	return nil
}

func (t *target) parseServer(u *url.URL, params map[string]string) error {
	t.settings = map[string]string{"application_name": "varve"}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if _, known := connParams[name]; !known && name != paramSchema && name != paramCitus {
			if name == paramBinDir {
				return fmt.Errorf("parameter %s is for a server that Varve starts, and the URL names a running one", name)
			}
			return unknownParam(name)
		}
		if name != paramSchema && name != paramCitus {
			t.settings[name] = params[name]
		}
	}
	if u.Opaque != "" {
		return forServer(paramHost)
	}
	t.password, _ = u.User.Password()
	for name, value := range map[string]string{
		paramHost: u.Hostname(),
		paramPort: u.Port(),
		"user":    u.User.Username(),
		"dbname":  strings.TrimPrefix(u.Path, "/"),
	} {
		if value == "" {
			continue
		}
		if _, twice := t.settings[name]; twice {
			return fmt.Errorf("%s is given in the address and as a parameter; keep one", name)
		}
		t.settings[name] = value
	}
	return nil
}

func forServer(name string) error {
	return fmt.Errorf("parameter %s is for a running server, and the URL names a directory", name)
}

func unknownParam(name string) error {
	return fmt.Errorf("parameter %s: unknown; known are %s", name, strings.Join(slices.Sorted(maps.Keys(params)), ", "))
}

// Waits of a connection.
const (
	// connectTimeout bounds the wait for a connection, unless the URL or the
	// environment says otherwise.
	connectTimeout = 10 * time.Second
)

// connConfig returns how to connect to the target, or to its server when that
// is embedded.
func (t target) connConfig(server *pgembed.Server) (*pgx.ConnConfig, error) {
	cfg, err := t.parse(server)
	if err != nil {
		return nil, err
	}
	if t.password != "" {
		cfg.Password = t.password
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	// Statements are prepared through database/sql, once for each connection,
	// so pgx needs no cache; a statement that runs once is not prepared.
	cfg.StatementCacheCapacity, cfg.DescriptionCacheCapacity = 0, 0
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler { return &canceller{conn: c} }
	return cfg, nil
}

// parse returns pgx's own settings of the connection.
func (t target) parse(server *pgembed.Server) (*pgx.ConnConfig, error) {
	if server != nil {
		cfg, err := server.ConnConfig()
		if err == nil {
			cfg.RuntimeParams["application_name"] = "varve"
		}
		return cfg, err
	}
	text := ""
	for _, name := range slices.Sorted(maps.Keys(t.settings)) {
		text += name + "=" + quoteSetting(t.settings[name]) + " "
	}
	return pgx.ParseConfig(text) // the text has no password, nor has an error
}

// quoteSetting quotes a value of a connection string.
func quoteSetting(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}
