//go:build !linux

package probe

import (
	"time"

	"github.com/prometheus/procfs"
)

func ownCPU() time.Duration { return 0 }

type syncCounter struct{}

func countSyncs(map[int]procfs.ProcStat) *syncCounter { return nil }

func (*syncCounter) count() (int64, bool) { return 0, false }

func (*syncCounter) close() {}
