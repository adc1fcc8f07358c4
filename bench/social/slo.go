package social

import (
	"fmt"
	"time"

	"github.com/varvedb/varve/bench/result"
)

// The service levels that AuthZed's test had to meet.
const (
	CheckLimit   = 25 * time.Millisecond  // 95th percentile of checks
	WriteLimit   = 100 * time.Millisecond // 95th percentile of writes
	SuccessLimit = 0.999                  // part of the requests
)

// Names of the records.
const (
	Experiment = "G2"         // in the catalogue of experiments
	LoadName   = "SocialLoad" // filling the store
	RunName    = "Social"     // a phase of a script
)

// Missed returns the service levels that the record of a phase does not meet; none
// for other records.
func Missed(r *result.Record) (missed []string) {
	if r.Name != RunName || r.Error != "" {
		return nil
	}
	for _, level := range []struct {
		kind  string
		limit time.Duration
	}{{"check", CheckLimit}, {"write", WriteLimit}} {
		if d := r.Latency(level.kind); d != nil && d.P95 >= level.limit {
			missed = append(missed, fmt.Sprintf("%s p95 %s", level.kind, d.P95.Round(time.Millisecond)))
		}
	}
	if success, _ := r.Metric(successUnit); success < SuccessLimit {
		missed = append(missed, fmt.Sprintf("success %.2f%%", 100*success))
	}
	return missed
}

// successUnit is the part of requests that ended well, 0…1.
const successUnit = "share-success"
