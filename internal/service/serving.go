package service

import (
	"cmp"
	"context"
	"log/slog"
	"time"
)

// Serving has the common parts of a service's transports. All except the gate
// are optional.
type Serving struct {
	Gate     *Gate           // decides which requests come in
	Timeouts Timeouts        // a zero one is no bound
	Ending   context.Context // done when the server goes down, which ends subscriptions; nil: never
	Log      *slog.Logger    // errors that clients do not get; nil drops them
	Access   *slog.Logger    // a line for each request; nil: none

	reports *reports
}

// Timeouts cut off slow clients.
type Timeouts struct {
	Header time.Duration // until the head of a request is there; 5s
	Read   time.Duration // until the body is there; 20s
	Write  time.Duration // until the answer is taken, in streams a part of it; 20s
	Work   time.Duration // for a request between the two, but for streams; 30s
	Idle   time.Duration // between requests; 2m
	Drain  time.Duration // for requests under way when the server ends; 15s
}

// WithDefaults replaces zero timeouts by their defaults.
func (t Timeouts) WithDefaults() Timeouts {
	t.Header = cmp.Or(t.Header, 5*time.Second)
	t.Read = cmp.Or(t.Read, 20*time.Second)
	t.Write = cmp.Or(t.Write, 20*time.Second)
	t.Work = cmp.Or(t.Work, DefaultWork)
	t.Idle = cmp.Or(t.Idle, 2*time.Minute)
	t.Drain = cmp.Or(t.Drain, 15*time.Second)
	return t
}

// WithDefaults adds defaults for missing parts, except timeouts.
func (s Serving) WithDefaults() Serving {
	s.Ending = cmp.Or(s.Ending, context.Background())
	s.Log = cmp.Or(s.Log, slog.New(slog.DiscardHandler))
	s.reports = &reports{log: s.Log, kinds: map[string]*reported{}}
	return s
}
