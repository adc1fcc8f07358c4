package social

import (
	"fmt"
	"strconv"
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

// Verdict is a phase held against the service levels.
type Verdict struct {
	Engine        string        `json:"engine"`
	Relationships int           `json:"relationships"`
	Target        float64       `json:"target_qps"`
	Rate          float64       `json:"qps"` // that ended well
	CheckP50      time.Duration `json:"check_p50_ns"`
	CheckP95      time.Duration `json:"check_p95_ns"`
	WriteP50      time.Duration `json:"write_p50_ns"`
	WriteP95      time.Duration `json:"write_p95_ns"`
	LookupP50     time.Duration `json:"lookup_p50_ns,omitempty"` // AuthZed's test has none, so no level is set
	LookupP95     time.Duration `json:"lookup_p95_ns,omitempty"`
	Success       float64       `json:"success"` // 0…1
	Missed        []string      `json:"missed,omitempty"`
	Error         string        `json:"error,omitempty"` // the run did not end well
}

// Met tells whether all levels were met.
func (v *Verdict) Met() bool { return v.Error == "" && len(v.Missed) == 0 }

// Judge holds the record of a phase against the service levels. False when it is
// no such record.
func Judge(r *result.Record) (Verdict, bool) {
	if r.Name != RunName {
		return Verdict{}, false
	}
	v := Verdict{Engine: r.Config.Get("engine"), Error: r.Error}
	v.Relationships, _ = strconv.Atoi(r.Config.Get("relationships")) // 0 in a foreign record
	v.Target, _ = strconv.ParseFloat(r.Config.Get("qps"), 64)
	v.Rate, _ = r.Metric("qps")
	v.Success, _ = r.Metric(successUnit)
	if d := r.Latency("check"); d != nil {
		v.CheckP50, v.CheckP95 = d.P50, d.P95
	}
	if d := r.Latency("write"); d != nil {
		v.WriteP50, v.WriteP95 = d.P50, d.P95
	}
	if d := r.Latency("lookup"); d != nil {
		v.LookupP50, v.LookupP95 = d.P50, d.P95
	}
	if v.CheckP95 >= CheckLimit {
		v.Missed = append(v.Missed, fmt.Sprintf("check p95 %s", v.CheckP95.Round(time.Millisecond)))
	}
	if v.WriteP95 >= WriteLimit {
		v.Missed = append(v.Missed, fmt.Sprintf("write p95 %s", v.WriteP95.Round(time.Millisecond)))
	}
	if v.Success < SuccessLimit {
		v.Missed = append(v.Missed, fmt.Sprintf("success %.2f%%", 100*v.Success))
	}
	return v, true
}

// successUnit is the part of requests that ended well, 0…1.
const successUnit = "share-success"
