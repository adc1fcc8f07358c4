package lab

import (
	"context"
	"strconv"

	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/probe"
)

// Machine is the experiment of looks at the machine, which come before each other one on an
// engine.
const Machine = "M1"

// machineOff is the configuration line that says why the machine is not as it was, or that
// others use it: what stands below it counts, and is marked.
const machineOff = "machine-off"

// Look looks at the machine for a second, keeps what it saw in the set, and notes for what is
// measured next where the machine is off, beside the set's earlier looks at this host.
func (l *Lab) Look(ctx context.Context, set *Set) error {
	var m probe.Machine
	err := l.aside(func() (err error) { m, err = probe.Look(ctx, l.Cache.Root()); return err })
	if err != nil {
		return err
	}
	before, err := looks(set)
	if err != nil {
		return err
	}
	l.Off = m.Off(before)
	if l.Off != "" {
		l.Log("the machine is off: %s", l.Off)
	}
	if l.manifest, err = l.describe(); err != nil {
		return err
	}
	r := &Record{Name: "Machine", Keys: Keys{{"host", bench.HostID()}}, Manifest: l.manifest, Count: int64(m.Fsync.Samples), Metrics: m.Metrics()}
	r.Manifest.Set(repeatKey, strconv.Itoa(len(before)+1))
	return set.Add(Machine, l.Engine.Label(), l.Sitting, r)
}

// looks returns what a set has seen of this host.
func looks(set *Set) (list []probe.Machine, err error) {
	host := bench.HostID()
	err = set.Read(func(r *benchfmt.Result) {
		if r.GetConfig(experimentKey) != Machine || r.GetConfig("host") != host {
			return
		}
		of := map[string]float64{}
		for _, v := range Written(r) {
			of[v.Unit] = v.Value
		}
		list = append(list, probe.MachineOf(of))
	})
	return list, err
}
