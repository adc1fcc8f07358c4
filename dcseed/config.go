package dcseed

import (
	"fmt"
	"math"

	"github.com/varvedb/varve/store/entity"
)

// The defaults of Config, which are the sizes of one full data centre.
const (
	DefaultNodes           = 100_000 // a data centre
	DefaultWorkloads       = 500_000 // a data centre
	DefaultPayload         = 10_000  // bytes an entity
	DefaultNodeUpdates     = 60      // a block
	DefaultWorkloadUpdates = 600     // a block
)

// The limits of Config. Identifiers have two digits for the data centre and six
// for the entity.
const (
	MaxDCs     = 99
	MaxPerDC   = 999_999
	MaxPayload = 64 << 20  // bytes
	maxOps     = 1_000_000 // a block
	opsPerTx   = 100       // operations are numbered tx 0 op 0 … op 99, tx 1 op 0 …
)

// Config is all that the data depend on. The zero value is one full data centre.
type Config struct {
	Seed uint64

	DCs            int // data centres; 0 means 1
	NodesPerDC     int // 0 means DefaultNodes
	WorkloadsPerDC int // 0 means five for each node, negative none

	// Payload is the size of an entity's content in bytes: 0 means
	// DefaultPayload, negative none.
	Payload int

	// FirstBlock is the number of the first block; 0 means 1.
	FirstBlock uint64

	// PerBlock is how many entities a block of the initial state creates. 0 means
	// 660 for each data centre, which makes the initial state as many blocks
	// long (910) at every scale, half of the shortest lifetime.
	PerBlock int

	// NodeUpdates and WorkloadUpdates are the turns in each block after the
	// initial state, over all data centres. 0 means DefaultNodeUpdates and
	// DefaultWorkloadUpdates or all entities if those are fewer; negative none.
	NodeUpdates     int
	WorkloadUpdates int
}

// ForScale returns the configuration for a multiple of the base profile's size:
// 1, 2, 5 and 10 mean 2, 4, 11 and 21 data centres. Below half the size of the
// base profile it is one data centre with fewer nodes and five workloads each:
// scale 0.005 has 1,000 nodes. It fails when scale is not above 0 or would need
// more than MaxDCs.
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

// withDefaults replaces the zero values, and negative ones that mean none by 0.
func (c Config) withDefaults() Config {
	orDefault(&c.DCs, 1)
	orDefault(&c.NodesPerDC, DefaultNodes)
	orDefault(&c.WorkloadsPerDC, c.NodesPerDC*(DefaultWorkloads/DefaultNodes))
	orDefault(&c.Payload, DefaultPayload)
	orDefault(&c.PerBlock, (DefaultNodeUpdates+DefaultWorkloadUpdates)*c.DCs)
	orDefault(&c.NodeUpdates, min(DefaultNodeUpdates, c.DCs*c.NodesPerDC))
	orDefault(&c.WorkloadUpdates, min(DefaultWorkloadUpdates, c.DCs*c.WorkloadsPerDC))
	if c.FirstBlock == 0 {
		c.FirstBlock = 1
	}
	for _, n := range []*int{&c.WorkloadsPerDC, &c.Payload, &c.NodeUpdates, &c.WorkloadUpdates} {
		*n = max(*n, 0)
	}
	return c
}

func orDefault(n *int, value int) {
	if *n == 0 {
		*n = value
	}
}

// check tells what is wrong with a configuration that has its defaults.
func (c Config) check() error {
	for _, field := range []struct {
		name        string
		value       int
		least, most int
	}{
		{"data centres", c.DCs, 1, MaxDCs},
		{"nodes a data centre", c.NodesPerDC, 1, MaxPerDC},
		{"workloads a data centre", c.WorkloadsPerDC, 0, MaxPerDC},
		{"payload bytes", c.Payload, 0, MaxPayload},
		{"entities a block", c.PerBlock, 1, maxOps},
		{"node updates a block", c.NodeUpdates, 0, maxOps},
		{"workload updates a block", c.WorkloadUpdates, 0, maxOps},
	} {
		if field.value < field.least || field.value > field.most {
			return fmt.Errorf("data centre config: %d %s, want %d to %d", field.value, field.name, field.least, field.most)
		}
	}
	if c.WorkloadUpdates > 0 && c.WorkloadsPerDC == 0 {
		return fmt.Errorf("data centre config: %d workload updates a block but no workloads", c.WorkloadUpdates)
	}
	if c.FirstBlock > entity.MaxBlockNumber {
		return fmt.Errorf("data centre config: first block %d is above the highest block number %d",
			c.FirstBlock, uint64(entity.MaxBlockNumber))
	}
	return nil
}
