package service

import (
	"log/slog"
	"sync"
	"time"
)

// reportEvery is how often an error is logged that a client can mend by trying again.
const reportEvery = time.Second

// reports logs the errors of requests. A service that has too much to do refuses a thousand requests
// a second, and must not write as many lines.
type reports struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[string]*reported // by the name of the problem
}

// reported is an error that was logged.
type reported struct {
	last time.Time
	more int // that were not logged since
}

// Report logs the error of a request: one of the service or the store each time, one that goes by at
// most once a second, with how many there were since. A Serving has it after WithDefaults.
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
