package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/social"
)

// socialReport is what the command prints.
type socialReport struct {
	Verdicts []socialVerdict `json:"verdicts"`
	Loads    []socialLoad    `json:"loads"`
	Errors   []string        `json:"errors,omitempty"`
}

// socialVerdict is a verdict with its sum.
type socialVerdict struct {
	social.Verdict
	Met bool `json:"met"`
}

// socialLoad is the filling of a store.
type socialLoad struct {
	Engine        string  `json:"engine"`
	Relationships string  `json:"relationships"`
	Seconds       float64 `json:"seconds"`
	Rate          float64 `json:"relationships_per_second"`
	Megabytes     float64 `json:"megabytes,omitempty"`
	Bytes         float64 `json:"bytes_per_relationship,omitempty"`
}

// readSocial returns what was recorded since a time, and derives the benchmark
// format of all records.
func readSocial(dir string, since time.Time) (*socialReport, error) {
	results, err := result.Read(dir)
	if err != nil {
		return nil, err
	}
	if err := result.WriteBenchFile(dir, results); err != nil {
		return nil, err
	}
	report := new(socialReport)
	for i := range results.Records {
		r := &results.Records[i]
		if r.Started.Before(since) {
			continue
		}
		if v, ok := social.Judge(r); ok {
			report.Verdicts = append(report.Verdicts, socialVerdict{v, v.Met()})
		}
		if r.Name == social.LoadName {
			report.Loads = append(report.Loads, newSocialLoad(r))
		}
	}
	return report, nil
}

func newSocialLoad(r *result.Record) socialLoad {
	l := socialLoad{Engine: r.Config.Get("engine"), Relationships: r.Config.Get("relationships")}
	for unit, to := range map[string]*float64{"load-s": &l.Seconds, "rel/s": &l.Rate, "db-MB": &l.Megabytes, "B/rel": &l.Bytes} {
		*to, _ = r.Metric(unit) // 0 when the engine does not tell
	}
	return l
}

func (r *socialReport) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "engine\trelationships\ttarget/s\tdone/s\tcheck p50\tp95 ms\twrite p50\tp95 ms\tlookup p50\tp95 ms\tsuccess\tSLO\t")
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%s\t%s\t%s\t%s\t%s\t%s\t%.2f%%\t%s\t\n", v.Engine, v.Relationships, v.Target, v.Rate,
			someMS(v.CheckP50), someMS(v.CheckP95), someMS(v.WriteP50), someMS(v.WriteP95), someMS(v.LookupP50), someMS(v.LookupP95),
			100*v.Success, v.sum())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nSLO: p95 of checks below %s, of writes below %s, success at least %.1f%%. Every answer was compared with the right one.\n\n",
		social.CheckLimit, social.WriteLimit, 100*social.SuccessLimit)
	fmt.Fprintln(w, "engine\trelationships\tload s\tper s\tMB\tB each\t")
	for _, l := range r.Loads {
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%.0f\t%.1f\t%.0f\t\n", l.Engine, l.Relationships, l.Seconds, l.Rate, l.Megabytes, l.Bytes)
	}
	return w.Flush()
}

// someMS is ms, or a dash for requests that the script does not have.
func someMS(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return ms(d)
}

func (v *socialVerdict) sum() string {
	switch {
	case v.Error != "":
		return "error: " + v.Error
	case v.Met:
		return "met"
	}
	return "missed: " + strings.Join(v.Missed, ", ")
}
