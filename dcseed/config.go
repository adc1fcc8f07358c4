package dcseed

import (
	"cmp"
	"fmt"
	"math"
)

// The defaults of Config: the sizes of one full data centre.
const (
	DefaultNodes           = 100_000 // a data centre
	DefaultPayload         = 10_000  // bytes an entity
	DefaultNodeUpdates     = 60      // a block
	DefaultWorkloadUpdates = 600     // a block
)

// workloadsPerNode is how many workloads are assigned to each node.
const workloadsPerNode = 5

// The limits of Config. Identifiers have two digits for the data centre and six
// for the entity.
const (
	MaxDCs     = 99
	MaxNodes   = 999_999 / workloadsPerNode // a data centre
	MaxPayload = 64 << 20                   // bytes
	maxOps     = 1_000_000                  // a block
	opsPerTx   = 100                        // operations are numbered tx 0 op 0 … op 99, tx 1 op 0 …
)

// FirstBlock is the number of the first block.
const FirstBlock = 1

// Config determines all data. The zero value is one full data centre.
type Config struct {
	Seed uint64

	DCs        int // data centres; 0 means 1
	NodesPerDC int // 0 means DefaultNodes; each has five workloads, as in Arkiv's example and not in its formula
	Payload    int // bytes of an entity's content; 0 means DefaultPayload

	// PerBlock is how many entities a block of the initial state creates. 0
	// means 660 for each data centre. Then the initial state has 910 blocks at
	// every scale, half of the shortest lifetime.
	PerBlock int

	// NodeUpdates and WorkloadUpdates are the numbers of entities that each
	// block after the initial state updates, over all data centres. 0 means
	// DefaultNodeUpdates and DefaultWorkloadUpdates, or all entities if those
	// are fewer.
	NodeUpdates     int
	WorkloadUpdates int
}

// ForScale returns the configuration for a multiple of the base profile's size:
// 1, 2, 5 and 10 mean 2, 4, 11 and 21 data centres. Below half the size of the
// base profile it is one data centre with fewer nodes, and five workloads for
// each: scale 0.005 has 1,000 nodes. It fails when scale is not above 0 or
// would need more than MaxDCs.
func ForScale(scale float64) (Config, error) {
	if !(scale > 0) || scale > MaxDCs {
		return Config{}, fmt.Errorf("data centre scale %v: want above 0 and at most %d data centres (about 47)", scale, MaxDCs)
	}
	if scale < 0.5 {
		nodes := max(1, int(math.Round(scale*2*DefaultNodes)))
		return Config{DCs: 1, NodesPerDC: nodes}, nil
	}
	dcs := int((21*scale + 5) / 10)
	if dcs > MaxDCs {
		return Config{}, fmt.Errorf("data centre scale %v: %d data centres, at most %d fit the identifiers", scale, dcs, MaxDCs)
	}
	return Config{DCs: dcs}, nil
}

// withDefaults replaces the zero values.
func (c Config) withDefaults() Config {
	c.DCs = cmp.Or(c.DCs, 1)
	c.NodesPerDC = cmp.Or(c.NodesPerDC, DefaultNodes)
	c.Payload = cmp.Or(c.Payload, DefaultPayload)
	c.PerBlock = cmp.Or(c.PerBlock, (DefaultNodeUpdates+DefaultWorkloadUpdates)*c.DCs)
	c.NodeUpdates = cmp.Or(c.NodeUpdates, min(DefaultNodeUpdates, c.DCs*c.NodesPerDC))
	c.WorkloadUpdates = cmp.Or(c.WorkloadUpdates, min(DefaultWorkloadUpdates, c.DCs*c.NodesPerDC*workloadsPerNode))
	return c
}

// check returns the faults of a configuration, after its defaults are set.
func (c Config) check() error {
	for _, field := range []struct {
		name        string
		value, most int
	}{
		{"data centres", c.DCs, MaxDCs},
		{"nodes a data centre", c.NodesPerDC, MaxNodes},
		{"payload bytes", c.Payload, MaxPayload},
		{"entities a block", c.PerBlock, maxOps},
		{"node updates a block", c.NodeUpdates, maxOps},
		{"workload updates a block", c.WorkloadUpdates, maxOps},
	} {
		if field.value < 1 || field.value > field.most {
			return fmt.Errorf("data centre config: %d %s, want 1 to %d", field.value, field.name, field.most)
		}
	}
	return nil
}
