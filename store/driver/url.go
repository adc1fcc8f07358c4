package driver

import (
	"fmt"
	"net/url"
)

// FilePath returns the path that a URL of an embedded engine names:
// "sqlite:///var/lib/x.db" is absolute, "sqlite:x.db" and "sqlite:./x.db" are
// relative to the working directory.
func FilePath(u *url.URL) (string, error) {
	path := u.Path
	if u.Opaque != "" {
		var err error
		if path, err = url.PathUnescape(u.Opaque); err != nil {
			return "", fmt.Errorf("%s: a wrong escape in the path", Redact(u.String()))
		}
	}
	switch {
	case u.Host != "":
		return "", fmt.Errorf("%s: %q is read as a host; write %s:%s%s for a relative path or %s:///… for an absolute one",
			Redact(u.String()), u.Host, u.Scheme, u.Host, u.Path, u.Scheme)
	case path == "" || path == "/":
		return "", fmt.Errorf("%s: no path; write %s:///var/lib/node/varve.db", Redact(u.String()), u.Scheme)
	case path == ":memory:":
		return "", fmt.Errorf("%s: %w: a store lives in a file", Redact(u.String()), ErrUnsupported)
	}
	return path, nil
}
