// Package address parses the URLs of libSQL databases: a path is for the
// embedded engine, anything with a host is a server.
package address

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/varvedb/varve/store/driver"
)

// Address is the place of a database. Exactly one field is set.
type Address struct {
	// Path is the path of the database file.
	Path string

	// Server has one of the schemes http, https, ws, wss and libsql (which
	// means https unless TLS is turned off), a host, perhaps a port and a path,
	// and no user or query.
	Server *url.URL
}

// schemes are the schemes of a server inside "libsql:https://host".
var schemes = []string{"http", "https", "ws", "wss"}

// Parse parses a URL without its query: "libsql:///abs/x.db" and "libsql:x.db"
// are paths, "libsql:https://host:port" and "libsql://host" are servers. Errors
// do not repeat a server's address, because it may contain a password.
func Parse(u *url.URL) (Address, error) {
	scheme, _, _ := strings.Cut(u.Opaque, ":")
	switch {
	case u.Host != "" || u.User != nil:
		return server(*u)
	case slices.Contains(schemes, strings.ToLower(scheme)):
		inner, err := driver.ParseURL(u.Opaque)
		if err != nil {
			return Address{}, fmt.Errorf("address of a libSQL server: %w", err)
		}
		return server(*inner)
	}
	path, err := driver.FilePath(u)
	return Address{Path: path}, err
}

func server(u url.URL) (_ Address, err error) {
	switch {
	case u.User != nil:
		err = errors.New("address of a libSQL server: it has a user or password; give a token by the parameter authToken instead")
	case u.Hostname() == "":
		err = fmt.Errorf("address of a libSQL server: no host; write libsql:%s://host", u.Scheme)
	case u.RawQuery != "" || u.Fragment != "":
		err = errors.New("address of a libSQL server: want no query and no fragment")
	}
	return Address{Server: &u}, driver.Of(driver.ErrURL, err)
}
