package driver

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// ParseURL parses a URL. Its error does not quote the URL, which may hold a
// password. A "#" is refused, because the fragment after it would be lost, and
// it was probably meant as a part of a path or parameter.
func ParseURL(raw string) (*url.URL, error) {
	if strings.Contains(raw, "#") {
		return nil, Of(ErrURL, errors.New(`it has a "#"; in a path, a password or a parameter write %23`))
	}
	u, err := url.Parse(raw)
	if err == nil {
		return u, nil
	}
	var detail *url.Error
	if errors.As(err, &detail) {
		err = detail.Err
	}
	what, _, _ := strings.Cut(err.Error(), ` "`) // it quotes a part of the URL
	return nil, Of(ErrURL, errors.New(what+"; special characters in a user or password are written as %2F and the like"))
}

// FilePath returns the path that a URL of an embedded engine names:
// "sqlite:///var/lib/x.db" is absolute, "sqlite:x.db" and "sqlite:./x.db" are
// relative to the working directory.
func FilePath(u *url.URL) (string, error) {
	path, err := u.Path, error(nil)
	if u.Opaque != "" {
		if path, err = url.PathUnescape(u.Opaque); err != nil {
			err = errors.New("a wrong escape in the path; write % as %25")
		}
	}
	switch {
	case u.Host != "":
		err = fmt.Errorf("%q is read as a host; write %s:%s%s for a relative path or %s:///… for an absolute one",
			u.Host, u.Scheme, u.Host, u.Path, u.Scheme)
	case err == nil && (path == "" || path == "/"):
		err = fmt.Errorf("no path; write for example %s:///var/lib/node/varve.db", u.Scheme)
	case path == ":memory:":
		err = fmt.Errorf("%w: a store lives in a file; write for example %s:varve.db", ErrUnsupported, u.Scheme)
	}
	return path, Of(ErrURL, err)
}

// Redact returns a URL, even a malformed one, for messages and records: without
// the password and without parameters, because a parameter may be a token.
func Redact(raw string) string {
	text, _, _ := strings.Cut(Hide(raw, raw), "?")
	return text
}

// Hide removes the passwords and tokens of URLs from a text.
func Hide(text string, urls ...string) string {
	for _, raw := range urls {
		if user, ok := userinfo(raw); ok {
			if _, password, ok := strings.Cut(user, ":"); ok {
				text = strings.ReplaceAll(text, ":"+password+"@", ":xxxxx@")
			}
		}
		for _, m := range secretSetting.FindAllStringSubmatch(raw, -1) {
			text = strings.ReplaceAll(text, m[0], m[1]+"xxxxx")
		}
	}
	return text
}

// secretSetting is a parameter of a URL, or a setting of a connection string.
var secretSetting = regexp.MustCompile(`(?i)(\w*(?:pass|pwd|token|secret)\w*\s*=\s*)('[^']*'|[^&\s]+)`)

// userinfo returns the part of an address before its last @. The password in it
// may have any characters, even characters that a URL may not have.
func userinfo(raw string) (string, bool) {
	address, _, _ := strings.Cut(raw, "?")
	if !strings.Contains(address, "@") {
		address = raw // the question mark is the password's
	}
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return "", false
	}
	address = address[:at]
	if _, user, ok := strings.Cut(address, "//"); ok {
		return user, true
	}
	scheme, rest, _ := strings.Cut(address, ":")
	if _, engine := Lookup(scheme); engine {
		return rest, true
	}
	return address, true
}
