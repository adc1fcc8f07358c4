package rest

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/varvedb/varve/internal/service"
)

// etags matches the value of If-Match and If-None-Match, as in RFC 9110.
var etags = regexp.MustCompile(`^(\*|(W/)?"[!#-~]*"([ \t]*,[ \t]*(W/)?"[!#-~]*")*)$`)

// etag formats the version of an entity as an ETag.
func etag(version uint64) string { return `"` + strconv.FormatUint(version, 10) + `"` }

// guard reads a request's conditions on the entity before the write.
func guard(r *http.Request) (g service.Guard, err error) {
	if g.Match, err = versions(r, "If-Match", false); err != nil {
		return g, err
	}
	g.NoneMatch, err = versions(r, "If-None-Match", true)
	return g, err
}

// versions parses a header of ETags; nil when there is none. An ETag that this
// service did not make matches no version. A weak one matches only if weak is
// set.
func versions(r *http.Request, name string, weak bool) (*service.Versions, error) {
	lines := r.Header.Values(name)
	if len(lines) == 0 {
		return nil, nil
	}
	text := strings.TrimSpace(strings.Join(lines, ","))
	if !etags.MatchString(text) {
		return nil, malformed("%s: %q: want * or a list of ETags, each in quotation marks", name, text)
	}
	list := &service.Versions{Any: text == "*"}
	for tag := range strings.SplitSeq(text, ",") {
		tag = strings.TrimSpace(tag)
		if weak {
			tag = strings.TrimPrefix(tag, "W/")
		}
		if version, err := strconv.ParseUint(strings.Trim(tag, `"`), 10, 64); err == nil && tag == etag(version) {
			list.List = append(list.List, version)
		}
	}
	return list, nil
}
