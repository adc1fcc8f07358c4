package remote

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	client "github.com/tursodatabase/libsql-client-go/libsql"

	"github.com/varvedb/varve/store/driver"
)

// tokenVariable is the environment variable of the token.
const tokenVariable = "LIBSQL_AUTH_TOKEN"

// defaultTimeout bounds one statement.
const defaultTimeout = time.Minute

var params = map[string]string{
	"authToken": "token of the server; the environment variable " + tokenVariable + " keeps it out of the URL",
	"tls":       "0 for a libsql://host:port without TLS (default 1)",
	"timeout":   "the longest wait for the answer to one statement, such as 30s (default 1m)",
}

// newConnector checks parameters and prepares connections; it does not connect
// yet.
func newConnector(server *url.URL, opts driver.Options) (*connector, error) {
	for _, name := range slices.Sorted(maps.Keys(opts.Params)) {
		if params[name] == "" {
			return nil, fmt.Errorf("parameter %s: unknown; known are %v", name, slices.Sorted(maps.Keys(params)))
		}
	}
	target, err := withTLS(server, opts.Params["tls"])
	if err != nil {
		return nil, fmt.Errorf("parameter tls: %w", err)
	}
	c := &connector{
		server:      target.Scheme + "://" + target.Host,
		token:       opts.Params["authToken"],
		timeout:     defaultTimeout,
		lockTimeout: opts.LockTimeout,
	}
	if c.token == "" {
		c.token = os.Getenv(tokenVariable)
	}
	if text := opts.Params["timeout"]; text != "" {
		if c.timeout, err = time.ParseDuration(text); err != nil || c.timeout <= 0 {
			return nil, fmt.Errorf("parameter timeout: want a positive duration such as 30s, got %q", text)
		}
	}
	var options []client.Option
	if c.token != "" {
		options = append(options, client.WithAuthToken(c.token))
	}
	if c.Connector, err = client.NewConnector(target.String(), options...); err != nil {
		return nil, c.explain(err, "")
	}
	return c, nil
}

// withTLS replaces the scheme libsql by the one meant.
func withTLS(server *url.URL, tls string) (*url.URL, error) {
	on := true
	if tls != "" {
		var err error
		if on, err = strconv.ParseBool(tls); err != nil {
			return nil, fmt.Errorf("want 0 or 1, got %q", tls)
		}
	}
	target := *server
	switch plain := server.Scheme == "http" || server.Scheme == "ws"; {
	case server.Scheme == "libsql" && on:
		target.Scheme = "https"
	case server.Scheme == "libsql" && server.Port() == "":
		return nil, errors.New("a server without TLS needs a port: libsql://host:port")
	case server.Scheme == "libsql":
		target.Scheme = "http"
	case tls != "" && on == plain:
		return nil, fmt.Errorf("%s says otherwise; leave it out, or write libsql://host:port", server.Scheme)
	}
	return &target, nil
}
