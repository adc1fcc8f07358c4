package bench

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/internal/memlimit"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Manifest is everything besides the workload that a result depends on.
type Manifest struct {
	Name     string           `json:"name,omitempty"` // of the benchmark
	Varve    Revision         `json:"varve"`
	Engine   EngineVersion    `json:"engine"`
	Settings []driver.Setting `json:"settings"` // as read back from the engine
	Options  StoreOptions     `json:"options"`  // as asked for; zero is the default
	Layout   string           `json:"layout"`
	Dataset  *DatasetID       `json:"dataset,omitempty"` // nil: the store was empty
	Host     Host             `json:"host"`
	Memory   MemoryLimit      `json:"memory"`
}

// MemoryLimit is what the process that measured could use of memory, with all that it
// started and with the page cache, as it was read back.
type MemoryLimit struct {
	Bytes  int64  `json:"bytes,omitempty"`  // 0: as much as there is
	How    string `json:"how,omitempty"`    // what keeps it
	Reason string `json:"reason,omitempty"` // that there is none
}

// EngineVersion is an engine with its library.
type EngineVersion struct {
	Name    string `json:"name"`
	Version string `json:"version"` // of the native library
	Library string `json:"library"` // Go module of the driver
}

// StoreOptions are the options that a store was opened with and that results depend
// on, as in driver.Options.
type StoreOptions struct {
	Durability  driver.Durability       `json:"durability,omitempty"`
	Checkpoint  driver.CheckpointPolicy `json:"checkpoint,omitempty"`
	WALFrames   int                     `json:"wal_frames,omitempty"`
	MemoryBytes int64                   `json:"memory_bytes,omitempty"`
	Readers     int                     `json:"readers,omitempty"`
	Params      map[string]string       `json:"params,omitempty"`
}

// DatasetID tells one data set from another.
type DatasetID struct {
	Key    string `json:"key"`    // hash of its parameters
	Digest string `json:"digest"` // of its history
	Head   uint64 `json:"head"`
	Rows   uint64 `json:"rows"`

	// InPlace tells that the data set itself was used and no fresh copy.
	InPlace bool `json:"in_place,omitempty"`
}

// NewManifest describes a run on an open copy of a data set. It probes the
// disk, for which it takes some time.
func NewManifest(ctx context.Context, cp *Copy, opts *store.Options) (Manifest, error) {
	m, err := DescribeStore(ctx, cp.DB, cp.data.Layout, opts, cp.run.path)
	if r := cp.Ready; err == nil && r.Counts.Versions > 0 {
		m.Dataset = &DatasetID{Key: r.Key, Digest: r.Digest, Head: r.Head, Rows: r.Counts.Rows(), InPlace: cp.lent != nil}
	}
	return m, err
}

// DescribeStore describes an open store, and the machine with the disk of a
// directory, which it probes.
func DescribeStore(ctx context.Context, db *store.DB, layout string, opts *store.Options, dir string) (Manifest, error) {
	m, err := DescribeEngine(db.Engine().Info().Name, opts, dir)
	if err != nil {
		return m, err
	}
	m.Engine = engineVersion(db.Engine().Info())
	if m.Settings, err = db.Settings(ctx); err != nil {
		return m, fmt.Errorf("manifest: %w", err)
	}
	m.Layout = layout
	return m, nil
}

// syncs are how many make the probe of a manifest.
const syncs = 64

// DescribeEngine describes what is known before a store is open, for runs that end
// there: the engine, whose version is known when it is linked, and the machine with
// the disk of a directory, which it probes.
func DescribeEngine(engine string, opts *store.Options, dir string) (Manifest, error) {
	host := ReadHost(dir)
	var err error
	if host.Fsync, err = probe.Sync(dir, syncs); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	m := Manifest{Varve: ReadRevision(), Engine: EngineVersion{Name: engine}, Host: host}
	if m.Memory.Bytes, m.Memory.How, err = memlimit.Own(); err != nil {
		m.Memory.Reason = err.Error()
	}
	if linked, ok := driver.Lookup(engine); ok {
		m.Engine = engineVersion(linked.Info)
	}
	if opts != nil {
		m.Options = StoreOptions{
			Durability: opts.Durability, Checkpoint: opts.Checkpoint, WALFrames: opts.WALFrames,
			MemoryBytes: opts.Memory, Readers: opts.Readers, Params: opts.Params,
		}
	}
	return m, nil
}

func engineVersion(info driver.Info) EngineVersion {
	return EngineVersion{Name: info.Name, Version: info.Version, Library: info.Library}
}
