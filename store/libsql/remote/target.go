package remote

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// tokenVariable is the environment variable with the token.
const tokenVariable = "LIBSQL_AUTH_TOKEN"

const (
	// defaultTimeout bounds one statement.
	defaultTimeout = time.Minute

	// defaultMaxRow is sqld's default max_row_size.
	defaultMaxRow = 5_000_000
)

var params = map[string]string{
	"authToken": "token of the server (default the environment variable " + tokenVariable + ", which keeps it out of the URL)",
	"tls":       "0 for a libsql://host:port without TLS, or 1 (default 1)",
	"namespace": "one of the server's databases, where it has several (default the one that the server takes)",
	"max_row":   "the longest row that the server takes, in bytes, above 0: its max_row_size (default 5000000)",
	"timeout":   "the longest wait for the answer to one statement, above 0, such as 30s (default 1m)",
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
		return nil, err
	}
	c := &connector{
		target:      strings.TrimSuffix(target.String(), "/"),
		server:      target.Scheme + "://" + target.Host,
		token:       cmp.Or(opts.Params["authToken"], os.Getenv(tokenVariable)),
		namespace:   opts.Params["namespace"],
		maxRow:      defaultMaxRow,
		timeout:     defaultTimeout,
		lockTimeout: opts.LockTimeout,
	}
	if text := opts.Params["timeout"]; text != "" {
		if c.timeout, err = time.ParseDuration(text); err != nil || c.timeout <= 0 {
			return nil, fmt.Errorf("parameter timeout: want a positive duration such as 30s, got %q", text)
		}
	}
	if text := opts.Params["max_row"]; text != "" {
		if c.maxRow, err = strconv.Atoi(text); err != nil || c.maxRow <= 0 {
			return nil, fmt.Errorf("parameter max_row: want a positive number of bytes, got %q", text)
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = opts.Readers + 2 // as many as there are connections
	transport.DisableCompression = true              // most bytes are keys, hashes and packed pages
	c.client = &http.Client{Transport: transport}
	return c, nil
}

// withTLS replaces the scheme libsql by https or http.
func withTLS(server *url.URL, tls string) (*url.URL, error) {
	on := true
	if tls != "" {
		var err error
		if on, err = strconv.ParseBool(tls); err != nil {
			return nil, fmt.Errorf("parameter tls: want 0 or 1, got %q", tls)
		}
	}
	target := *server
	switch plain := server.Scheme == "http"; {
	case server.Scheme == "ws" || server.Scheme == "wss":
		return nil, fmt.Errorf("scheme %s: %w: write %s, at which the same server answers", server.Scheme, driver.ErrUnsupported,
			strings.Replace(server.Scheme, "ws", "http", 1))
	case server.Scheme == "libsql" && on:
		target.Scheme = "https"
	case server.Scheme == "libsql" && server.Port() == "":
		return nil, errors.New("parameter tls: a server without TLS needs a port: libsql://host:port")
	case server.Scheme == "libsql":
		target.Scheme = "http"
	case tls != "" && on == plain:
		return nil, fmt.Errorf("parameter tls: %s says otherwise; leave it out, or write libsql://host:port", server.Scheme)
	}
	return &target, nil
}
