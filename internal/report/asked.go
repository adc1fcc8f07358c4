package report

import (
	"regexp"
	"strconv"
	"strings"
)

// MinBusy is the minimum share of the wall clock that the operations of a
// closed loop must take. Below it the loop measures its own overhead, and its
// rate is not the engine's.
const MinBusy = 0.95

var (
	capacity   = regexp.MustCompile(`^(settled-)?(rows|ent|op|ev)/s$|^qps$`)
	percentile = regexp.MustCompile(`^(\w+-)?(?:p(\d+)|max)-ms$`)
	relative   = regexp.MustCompile(`(/s|/op|qps|-ms|-ns|-s)(-[A-Z])?$`) // times and rates, which a host changes
)

// delivered reports whether the operations were scheduled at a rate. Then the
// figure is the delivered part of that rate, and not a capacity.
func delivered(l *Line, unit string) bool {
	_, late := l.Value("late")
	_, commits := l.Value("commit-late")
	return capacity.MatchString(unit) && (late || commits && unit != "qps")
}

// atLimit reports whether a percentile or maximum belongs to an arrival that
// was given up. Older results do not include these in percentiles; there it is
// inferred from the share of requested reads that were not delivered.
func atLimit(l *Line, unit string, v float64) bool {
	of := percentile.FindStringSubmatch(unit)
	if of == nil {
		return false
	}
	key := "skipped"
	if _, both := l.Value("read-" + unit); both {
		key = "commit-skipped"
	}
	if n, _ := l.Value(key); n <= 0 {
		return false
	}
	qps, _ := l.Value("qps")
	want, err := strconv.ParseFloat(strings.TrimPrefix(Key(l, "qps")+Key(l, "loop"), "open-"), 64)
	part, _ := strconv.ParseFloat(of[2], 64)
	return v >= waitLimit || err == nil && key == "skipped" && qps < want*part/100
}
