package social

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store/driver"
)

// The service levels that AuthZed's test had to meet.
const (
	CheckLimit   = 25 * time.Millisecond  // 95th percentile of checks
	WriteLimit   = 100 * time.Millisecond // 95th percentile of writes
	SuccessLimit = 0.999                  // part of the requests
)

// Step is a kind of request with its weight in a random choice.
type Step struct {
	Name   string // "check-" with a kind of object, or "write-" with a toggle
	Weight int
}

// Mix is the load of AuthZed's test: 60 % of the checks ask for content, 30 %
// for users, 10 % for interactions, and 1 % of all requests write a
// relationship. The kinds of writes are not published; here users follow and
// unfollow, publish and hide, and sometimes block.
var Mix = []Step{
	{"check-content", 594}, {"check-user", 297}, {"check-interaction", 99},
	{"write-follower", 6}, {"write-visibility", 3}, {"write-blocked", 1},
}

// Active is the active share of the users, content and interactions in
// AuthZed's test.
const Active = 0.1

// Config configures Run.
type Config struct {
	pace.Config
	Mix []Step

	// Active is AuthZed's sampling factor: the share of the users, content and
	// interactions that take part (above 0, at most 1). With 1,000 users and
	// 0.01 these are numbers 1, 101, 201, …
	Active float64
}

// Run sends requests to a store that the oracle knows, and compares every
// answer. It ends with ErrMismatch at the first wrong answer; a request that
// the engine refuses counts as failed. The outcome is never nil.
//
// The database must have been opened with as many readers as there are workers.
func Run(ctx context.Context, s *Store, o *Oracle, cfg Config) (*pace.Outcome, error) {
	cfg.OnError = tolerate
	among, sum := newActive(o.g, cfg.Active), 0
	for _, step := range cfg.Mix {
		sum += step.Weight
	}
	return pace.Loop(ctx, cfg.Config, func(ctx context.Context, step *pace.Step) error {
		at, i := step.Rand.IntN(sum), 0
		for ; at >= cfg.Mix[i].Weight; i++ {
			at -= cfg.Mix[i].Weight
		}
		step.Kind = cfg.Mix[i].Name
		word, what, _ := strings.Cut(step.Kind, "-")
		switch {
		case word == "check":
			q := Question{Viewer: among.pick(step.Rand, User), Object: among.pick(step.Rand, Kind(slices.Index(kindNames[:], what)))}
			v, err := s.View(ctx, o)
			if err != nil {
				return err
			}
			may, err := v.Ask(ctx, q)
			err = errors.Join(err, v.Close())
			if step.Stop(); err != nil { // before the answer is judged
				return err
			}
			return o.Judge(v.Span, q, may)
		case what == ToggleVisibility:
			return s.Write(ctx, o, what, among.pick(step.Rand, Content), Everybody)
		}
		object := among.pick(step.Rand, User)
		return s.Write(ctx, o, what, object, among.other(step.Rand, object))
	})
}

// tolerate implements pace.Config.OnError. It ends the loop after an unknown
// outcome, because the oracle no longer knows the right answers.
func tolerate(err error) bool {
	return !errors.Is(err, bench.ErrMismatch) && !errors.Is(err, driver.ErrUnknownOutcome)
}

// Sums returns the combined latencies of all checks and of all writes.
func Sums(o *pace.Outcome) (list []pace.Kind) {
	for _, word := range []string{"check", "write"} {
		all := latency.NewRecorder()
		for _, k := range o.Kinds {
			if strings.HasPrefix(k.Name, word+"-") {
				all.Merge(k.Latency)
			}
		}
		if all.Count() > 0 {
			list = append(list, pace.Kind{Name: word, Latency: all})
		}
	}
	return list
}

// Metrics returns the figures for the service levels: the share of successful
// requests, the latencies of Sums, and how many levels were missed.
func Metrics(o *pace.Outcome) (list []latency.Metric) {
	list = append(list, latency.Metric{Value: o.Success(), Unit: "share-success"})
	missed := 0.0
	if o.Success() < SuccessLimit {
		missed++
	}
	limits := map[string]time.Duration{"check": CheckLimit, "write": WriteLimit}
	for _, k := range Sums(o) {
		p95 := k.Latency.Quantile(95)
		if p95 >= limits[k.Name] {
			missed++
		}
		list = append(list, latency.Milliseconds(k.Latency.Quantile(50), k.Name+"-p50-ms"), latency.Milliseconds(p95, k.Name+"-p95-ms"))
	}
	return append(list, latency.Metric{Value: missed, Unit: "levels-missed"})
}
