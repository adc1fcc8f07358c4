package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/varvedb/varve/bench/rebac"
)

// printRebac prints the reports of all engines, a table of ingest and one for each
// number of clients and closure.
func printRebac(out io.Writer, outcomes []rebacOutcome) error {
	var reports []*rebacReport
	for i := range outcomes {
		if o := &outcomes[i]; o.Error != "" {
			fmt.Fprintf(out, "%s failed: %s\n", o.Name, o.Error)
		}
		if outcomes[i].Report != nil {
			reports = append(reports, outcomes[i].Report)
		}
	}
	if len(reports) == 0 {
		return nil
	}
	printRebacHead(out, reports[0])
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "engine\tversion\tingest s\tobjects/s\tbatch p95 ms\tindexes s\tclosure s\tclosure rows\tMB\t")
	for _, r := range reports {
		in := &r.Ingest
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%.0f\t%s\t%.2f\t%.3f\t%d\t%.1f\t\n", r.Engine.Name, r.Engine.Version, in.Took.Seconds(), in.Rate(),
			ms(in.Batches.P95), in.Indexes.Seconds(), r.Closure.Seconds(), r.ClosureRows, float64(r.StorageBytes())/1e6)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, group := range rebacGroups(reports) {
		fmt.Fprintf(out, "\n%d clients, closure %s\n", group.clients, group.closure)
		printRebacGroup(w, reports, group)
		if err := w.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "\nLatencies are from all samples. Every answer of every measurement was compared with the right one.")
	return nil
}

func printRebacHead(out io.Writer, r *rebacReport) {
	s, h := r.Size, r.Manifest.Host
	fmt.Fprintf(out, "size %s: %d organizations, %d users, %d groups, %d resources, %d entries of access lists; seed %d\n",
		s.Name, s.Orgs, s.Users, s.Groups, s.Resources, s.Entries(), r.Seed)
	fmt.Fprintf(out, "heavy manager: user %d; regular viewer: user %d\n", r.Heavy, r.Regular)
	fmt.Fprintf(out, "%d cores, %.0f GiB, %s on %s, fsync %s, durability %s\n\nIngest in batches of one transaction, and the closure\n",
		h.Cores, float64(h.MemoryBytes)/(1<<30), h.Kernel, h.Filesystem, h.Fsync.Median, r.Manifest.Options.Durability)
}

// rebacGroup is what a table of measurements has in common.
type rebacGroup struct {
	clients int
	closure rebac.Closure
}

func rebacGroups(reports []*rebacReport) []rebacGroup {
	var list []rebacGroup
	seen := map[rebacGroup]bool{}
	for _, r := range reports {
		for i := range r.Measurements {
			g := rebacGroup{r.Measurements[i].Clients, r.Measurements[i].Closure}
			if !seen[g] {
				list = append(list, g)
			}
			seen[g] = true
		}
	}
	return list
}

// printRebacGroup prints a scenario after the other with all engines.
func printRebacGroup(w io.Writer, reports []*rebacReport, g rebacGroup) {
	fmt.Fprintln(w, "scenario\tengine\tmean\tp50\tp95\tp99\tmax ms\t/s\tCV\tof runs\terrors %\tCPU ms/1K\tids\t")
	var scenarios []string
	rows := map[string][]string{}
	for _, r := range reports {
		for i := range r.Measurements {
			m := &r.Measurements[i]
			if (rebacGroup{m.Clients, m.Closure}) != g {
				continue
			}
			if rows[m.Scenario] == nil {
				scenarios = append(scenarios, m.Scenario)
			}
			rows[m.Scenario] = append(rows[m.Scenario], rebacRow(r.Engine.Name, m))
		}
	}
	for _, name := range scenarios {
		for _, row := range rows[name] {
			fmt.Fprint(w, row)
		}
	}
}

func rebacRow(engine string, m *rebac.Measurement) string {
	l, cpu := &m.Latency, "-"
	if m.CPU > 0 {
		cpu = ms(m.CPU)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f\t%.2f\t%.2f\t%.2g\t%s\t%.0f\t\n", m.Scenario, engine,
		ms(l.Mean), ms(l.P50), ms(l.P95), ms(l.P99), ms(l.Max), m.Rate, l.CV, l.RunsCV, 100*m.ErrorRate(), cpu, m.IDs)
}
