package dcseed

import "github.com/varvedb/varve/internal/splitmix"

// The values of the string attributes.
const (
	TypeNode     = "node"
	TypeWorkload = "workload"

	RegionEUWest  = "eu-west"
	RegionUSEast  = "us-east"
	RegionAsiaPac = "asia-pac"
	RegionAny     = "any" // of workloads: every region will do

	VMTypeCPU      = "cpu"
	VMTypeGPU      = "gpu"
	VMTypeGPULarge = "gpu_large"

	StatusAvailable = "available" // nodes
	StatusBusy      = "busy"
	StatusOffline   = "offline"
	StatusPending   = "pending" // workloads
	StatusRunning   = "running"
	StatusCompleted = "completed"
)

// MinPrice and MaxPrice bound price_hour, in cents, both included. Prices are
// uniform.
const (
	MinPrice = 50
	MaxPrice = 500
)

// ShortestLife is the lower bound of lifetimes, in blocks.
const ShortestLife = 1_800

// choice is a value of an attribute, with the percentage of draws that give it.
type choice[T any] struct {
	value   T
	percent uint64
}

// The distributions. The percentages of a table add up to 100. The seed
// document also has a workload status "failed", which its generator never
// draws.
var (
	nodeRegions = []choice[string]{{RegionEUWest, 40}, {RegionUSEast, 35}, {RegionAsiaPac, 25}}
	// The seed's generator gives workloads the regions of nodes. Its data model
	// has "any" instead of the third region, so that a match can accept several
	// regions; that is used here.
	workloadRegions  = []choice[string]{{RegionEUWest, 40}, {RegionUSEast, 35}, {RegionAny, 25}}
	vmTypes          = []choice[string]{{VMTypeCPU, 70}, {VMTypeGPU, 25}, {VMTypeGPULarge, 5}}
	nodeStatuses     = []choice[string]{{StatusAvailable, 70}, {StatusBusy, 25}, {StatusOffline, 5}}
	workloadStatuses = []choice[string]{{StatusPending, 15}, {StatusRunning, 80}, {StatusCompleted, 5}}

	cpuCounts  = []choice[uint64]{{4, 30}, {8, 30}, {16, 25}, {32, 15}}
	ramSizes   = []choice[uint64]{{16, 25}, {32, 30}, {64, 30}, {128, 15}}
	availHours = []choice[uint64]{{1, 10}, {4, 20}, {8, 25}, {24, 25}, {168, 20}}
	reqCPUs    = []choice[uint64]{{1, 40}, {2, 30}, {4, 20}, {8, 10}}
	reqRAMs    = []choice[uint64]{{4, 35}, {8, 30}, {16, 25}, {32, 10}}
	maxHours   = []choice[uint64]{{1, 30}, {2, 25}, {4, 20}, {8, 15}, {24, 10}}

	// lifetimes are bands in blocks of 2 s, uniform within, ends included: one to
	// six hours, twelve hours to a week, one to four weeks.
	lifetimes = []choice[[2]uint64]{
		{[2]uint64{ShortestLife, 10_800}, 10},
		{[2]uint64{21_600, 302_400}, 60},
		{[2]uint64{302_400, 1_209_600}, 30},
	}
)

// pick returns the index of the choice for a hash.
func pick[T any](choices []choice[T], hash uint64) int {
	r := splitmix.Below(hash, 100)
	for i, c := range choices {
		if r < c.percent {
			return i
		}
		r -= c.percent
	}
	return len(choices) - 1
}

func draw[T any](choices []choice[T], hash uint64) T { return choices[pick(choices, hash)].value }

// A random value is a hash of its purpose and not the next number of a
// generator, so that any value can be computed without the earlier ones.

// source is the random seed of one entity.
type source uint64

// field is the purpose of a random value.
type field uint8

const (
	fieldStatus field = iota + 1
	fieldRegion
	fieldVMType
	fieldCPU
	fieldRAM
	fieldPrice
	fieldHours
	fieldTenant
	fieldLifeBand
	fieldLife
	fieldPayload
)

// draw returns the hash for a field in a revision of the entity; revision 0 is
// its creation.
func (s source) draw(f field, revision uint64) uint64 {
	return splitmix.Mix(uint64(s) ^ splitmix.Mix(uint64(f)<<56|revision))
}
