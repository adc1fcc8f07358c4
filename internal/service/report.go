package service

import (
	"log/slog"
	"sync"
	"time"
)

// reportEvery is the minimum interval between log lines of an error that passes
// when the client tries again.
const reportEvery = time.Second

// reports limits the logging of request errors, because an overloaded service
// may refuse a thousand requests a second.
type reports struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[string]*reported // by the name of the problem
}

// reported is an error that was logged.
type reported struct {
	last time.Time
	more int // occurrences since the last log line
}

// Report logs the error of a request. Errors of the service or the store are
// all logged. An error that passes when the client tries again is logged at
// most once a second, with the number of occurrences since. Call it only after
// WithDefaults.
func (s *Serving) Report(class Class, err error, attrs ...any) {
	r := s.reports
	attrs = append(attrs, "problem", class.Slug, "error", err)
	if !class.Retry {
		r.log.Error("request", attrs...)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := r.kinds[class.Slug]
	if kind == nil {
		kind = &reported{}
		r.kinds[class.Slug] = kind
	}
	if time.Since(kind.last) < reportEvery {
		kind.more++
		return
	}
	r.log.Warn("request", append(attrs, "more", kind.more)...)
	*kind = reported{last: time.Now()}
}
