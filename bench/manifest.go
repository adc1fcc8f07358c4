package bench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/internal/build"
	"github.com/varvedb/varve/internal/memlimit"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Manifest describes everything besides the workload that a result depends on,
// as configuration lines of the Go benchmark format, whose keys are in lower
// case.
type Manifest []benchfmt.Config

// Set adds or replaces a key; an empty value is left out.
func (m *Manifest) Set(key, value string) {
	key = strings.NewReplacer(" ", "-", ":", "-").Replace(strings.ToLower(key))
	*m = slices.DeleteFunc(slices.Clone(*m), func(c benchfmt.Config) bool { return c.Key == key })
	if value = strings.Join(strings.Fields(value), " "); value != "" {
		*m = append(*m, benchfmt.Config{Key: key, Value: []byte(value), File: true})
	}
}

// Get returns the value of a key, or "".
func (m Manifest) Get(key string) string {
	for _, c := range m {
		if c.Key == key {
			return string(c.Value)
		}
	}
	return ""
}

// Revision returns the commit that the program was built from, with "+dirty"
// for uncommitted changes; "" if the build does not record it, as in tests.
func Revision() string {
	commit, dirty := strings.CutSuffix(build.Read().Revision, build.Changes)
	if commit = commit[:min(len(commit), 12)]; dirty {
		commit += "+dirty"
	}
	return commit
}

// syncs is the number of syncs in a manifest's disk probe.
const syncs = 64

// DescribeHost describes this program, the machine and the disk of a directory,
// which it probes.
func DescribeHost(dir string) (m Manifest, err error) {
	disk, err := probe.Sync(dir, syncs)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	m.Set("host", HostID())
	m.Set("revision", Revision())
	m.Set("fsync-us", fmt.Sprintf("%.1f", float64(disk.Quantile(50))/float64(time.Microsecond)))
	m.Set("go", runtime.Version())
	m.Set("cores", fmt.Sprint(runtime.NumCPU()))
	readSystem(&m, dir)
	limit, how, unlimited := memlimit.Own()
	if unlimited != nil {
		how = "nothing: " + unlimited.Error()
	} else {
		m.Set("memory-mb", fmt.Sprint(limit>>20))
	}
	m.Set("memory-kept-by", how)
	return m, nil
}

// OfStore adds an open store's description and the options it was opened with.
func (m *Manifest) OfStore(ctx context.Context, db *store.DB, opts *store.Options) error {
	info := db.Engine().Info()
	m.OfEngine(info)
	settings, err := db.Engine().Settings(ctx)
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	for _, s := range settings {
		m.Set("setting-"+s.Name, s.Value)
	}
	if opts == nil {
		return nil
	}
	for key, n := range map[string]int64{"cache-mb": opts.Memory >> 20, "readers": int64(opts.Readers)} {
		if n > 0 {
			m.Set(key, fmt.Sprint(n))
		}
	}
	return nil
}

// OfEngine adds an engine's version.
func (m *Manifest) OfEngine(info driver.Info) { m.Set("engine-version", info.Name+" "+info.Version) }

// HostID identifies this machine since its last boot. Copies of one machine
// image share only the first part.
func HostID() string {
	id := func(path string, length int) string {
		text, _ := os.ReadFile(path) // none has none
		word := strings.TrimSpace(string(text))
		return word[:min(len(word), length)]
	}
	machine, boot := id("/etc/machine-id", 8), id("/proc/sys/kernel/random/boot_id", 4)
	if machine == "" {
		machine, _ = os.Hostname()
	}
	if boot == "" {
		return machine
	}
	return machine + "-" + boot
}
