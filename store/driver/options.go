package driver

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Options are the settings common to all engines. The zero value is usable:
// durable, background checkpoints, the default memory budget.
type Options struct {
	// Durability is the promise of a commit; zero means Durable.
	Durability Durability

	// Checkpoint selects who moves the write-ahead log into the database; zero
	// means Background. Engines without Capabilities.WALCheckpoint accept only
	// zero.
	Checkpoint CheckpointPolicy

	// WALFrames is the size of the log, in pages, at which a checkpoint starts: SQLite's
	// wal_autocheckpoint for Inline, the trigger of the checkpointer for Background. Zero means
	// 1000 for Inline and the pages of 16 MiB for Background.
	WALFrames int

	// Memory is the engine's budget for caching, in bytes; zero means
	// DefaultMemory. All engines get the same budget in a comparison.
	Memory int64

	// Readers bounds the number of snapshots open at once; zero means DefaultReaders.
	Readers int

	// Concurrency bounds how many snapshots work at the same time. Further ones
	// wait, first come, first served, until one of these is closed or has been
	// open for longer than most reads take (20 ms). So a snapshot that is kept
	// open does not block the others. Zero means the engine's default:
	// GOMAXPROCS, the processors that this process uses, for engines that work
	// in it, and Readers for servers.
	Concurrency int

	// LockTimeout bounds the wait for a database that another process is
	// writing; zero means 5 seconds.
	LockTimeout time.Duration

	// MaxReaderAge is the age from which a snapshot may be ended when it holds back a checkpoint of
	// a log that has reached its cap; zero means one minute.
	MaxReaderAge time.Duration

	// ReadOnly opens an existing database without writing to it.
	ReadOnly bool

	// Params are engine-specific parameters. An engine refuses one it does not know.
	Params map[string]string
}

// Defaults of Options.
const (
	DefaultMemory       = 256 << 20
	DefaultReaders      = 4
	DefaultLockTimeout  = 5 * time.Second
	DefaultMaxReaderAge = time.Minute
)

// WithDefaults returns o with every zero field but Checkpoint and WALFrames
// (whose defaults are the engine's) set to its default.
func (o Options) WithDefaults() Options {
	o.Durability = cmp.Or(o.Durability, Durable)
	o.Memory = cmp.Or(o.Memory, DefaultMemory)
	o.Readers = cmp.Or(o.Readers, DefaultReaders)
	o.LockTimeout = cmp.Or(o.LockTimeout, DefaultLockTimeout)
	o.MaxReaderAge = cmp.Or(o.MaxReaderAge, DefaultMaxReaderAge)
	return o
}

// Durability is the promise of a commit about a power failure.
type Durability string

// The durability levels. What each sets in each engine is in
// docs/durability.md and is read back by Engine.Settings.
const (
	Durable Durability = "durable" // a returned commit survives power loss
	Relaxed Durability = "relaxed" // the store stays consistent but may lose its last commits
	Unsafe  Durability = "unsafe"  // power loss may destroy the store
)

// ParseDurability checks that s is the name of a level.
func ParseDurability(s string) (Durability, error) {
	return oneOf("durability", s, Durable, Relaxed, Unsafe)
}

func oneOf[T ~string](what, s string, a, b, c T) (T, error) {
	if t := T(s); t == a || t == b || t == c {
		return t, nil
	}
	return "", fmt.Errorf("unknown %s %q; known are %s, %s, %s", what, s, a, b, c)
}

// CheckpointPolicy selects who runs checkpoints of the write-ahead log.
type CheckpointPolicy string

// The checkpoint policies.
const (
	Background CheckpointPolicy = "background" // Varve's checkpointer, concurrently with the writer
	Inline     CheckpointPolicy = "inline"     // the engine, inside the commit that fills the log
	Manual     CheckpointPolicy = "manual"     // only Checkpointer.Checkpoint
)

// ParseCheckpointPolicy checks that s is the name of a policy.
func ParseCheckpointPolicy(s string) (CheckpointPolicy, error) {
	return oneOf("checkpoint policy", s, Background, Inline, Manual)
}

// ParseBytes reads a number of bytes: "1048576", "64KiB", "256MiB", "1GiB"; the
// suffixes KB, MB and GB mean the same powers of 1024.
func ParseBytes(s string) (int64, error) {
	number, shift := s, 0
	for i, unit := range []string{"K", "M", "G"} {
		for _, suffix := range []string{unit + "iB", unit + "B", unit} {
			if rest, ok := strings.CutSuffix(s, suffix); ok && shift == 0 {
				number, shift = rest, 10*(i+1)
			}
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)>>shift {
		return 0, fmt.Errorf("want a number of bytes such as 256MiB, got %q", s)
	}
	return n << shift, nil
}
