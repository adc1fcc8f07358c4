package lab

import (
	"context"
	"strconv"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/probe"
)

// Machine is the experiment of looks at the machine, which come before each other one on an
// engine.
const Machine = "M1"

// machineOff is the configuration line that says that others use the machine: what stands below
// it counts, and is marked.
const machineOff = "machine-off"

// Look looks at the machine for a second, keeps what it saw in the set, and notes for what is
// measured next why that cannot be relied on.
func (l *Lab) Look(ctx context.Context, set *Set) error {
	var m probe.Machine
	err := l.aside(func() (err error) { m, err = probe.Look(ctx, l.Cache.Root()); return err })
	if err != nil {
		return err
	}
	if l.off = m.Off(); l.off != "" {
		l.Log("the machine is off: %s", l.off)
	}
	if l.manifest, err = l.describe(); err != nil {
		return err
	}
	r := &Record{Name: "Machine", Keys: l.keys("host", bench.HostID()), Manifest: l.manifest, Count: m.Fsync.Count(), Metrics: m.Metrics()}
	r.Manifest.Set(repeatKey, strconv.Itoa(l.Repeat+1))
	return set.Add(Machine, l.Engine.Label(), l.Sitting, r)
}
