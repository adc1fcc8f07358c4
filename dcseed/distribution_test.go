package dcseed

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// critical has the values that chi-square with so many degrees of freedom
// passes once in a thousand times.
var critical = map[int]float64{1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 9: 27.88, 10: 29.59}

func requireChiSquare(t *testing.T, what string, observed []int, shares []float64) {
	t.Helper()
	total, sum := 0, 0.0
	for _, n := range observed {
		total += n
	}
	for i, n := range observed {
		want := shares[i] * float64(total)
		sum += (float64(n) - want) * (float64(n) - want) / want
	}
	limit, ok := critical[len(observed)-1]
	require.True(t, ok, "no critical value for %d degrees of freedom", len(observed)-1)
	require.Less(t, sum, limit, "%s: observed %v", what, observed)
}

// distribution is how the values of one attribute are meant to be spread over the
// entities of one type, at every block.
type distribution struct {
	typ, attribute string
	shares         []choice[string]
}

func spread[T any](typ, attribute string, choices []choice[T]) distribution {
	d := distribution{typ: typ, attribute: attribute}
	for _, c := range choices {
		d.shares = append(d.shares, choice[string]{fmt.Sprint(c.value), c.percent})
	}
	return d
}

// distributions has all attributes that are drawn from a list of values. The
// remaining attributes are identifiers and price_hour, which is uniform.
var distributions = []distribution{
	spread(TypeNode, "region", nodeRegions),
	spread(TypeNode, "status", nodeStatuses),
	spread(TypeNode, "vm_type", vmTypes),
	spread(TypeNode, "cpu_count", cpuCounts),
	spread(TypeNode, "ram_gb", ramSizes),
	spread(TypeNode, "avail_hours", availHours),
	spread(TypeWorkload, "region", workloadRegions),
	spread(TypeWorkload, "status", workloadStatuses),
	spread(TypeWorkload, "vm_type", vmTypes),
	spread(TypeWorkload, "req_cpu", reqCPUs),
	spread(TypeWorkload, "req_ram", reqRAMs),
	spread(TypeWorkload, "max_hours", maxHours),
}

// The drawn attributes follow their distributions when created and after many
// revisions.
func TestDistributions(t *testing.T) {
	m := newModel(t, Config{Seed: 11, NodesPerDC: 10_000, Payload: 1, NodeUpdates: 1_000, WorkloadUpdates: 5_000})
	for _, block := range []uint64{m.FirstLoadBlock() - 1, m.FirstLoadBlock() + 95} {
		counts := map[string]int{}
		for _, p := range []*population{&m.nodes, &m.workloads} {
			for i := range p.count {
				e, ok := m.EntityAt(p.ref(i), block)
				require.True(t, ok)
				countValues(counts, e)
			}
		}
		for _, d := range distributions {
			var observed []int
			var shares []float64
			sum := 0
			for _, s := range d.shares {
				observed = append(observed, counts[d.typ+"."+d.attribute+"."+s.value])
				shares = append(shares, float64(s.percent)/100)
				sum += observed[len(observed)-1]
			}
			require.InDelta(t, 1, sumOf(shares), 1e-9, "%s.%s", d.typ, d.attribute)
			require.EqualValues(t, m.population(classOf(d.typ)).count, sum, "%s.%s has other values", d.typ, d.attribute)
			requireChiSquare(t, d.typ+"."+d.attribute, observed, shares)
		}
	}
}

func sumOf(list []float64) (sum float64) {
	for _, x := range list {
		sum += x
	}
	return sum
}

func classOf(typ string) Class {
	if typ == TypeNode {
		return ClassNode
	}
	return ClassWorkload
}

func countValues(counts map[string]int, e *entity.Entity) {
	typ := e.StringAttributes["type"]
	for name, value := range e.StringAttributes {
		counts[typ+"."+name+"."+value]++
	}
	for name, value := range e.NumericAttributes {
		counts[typ+"."+name+"."+strconv.FormatUint(value, 10)]++
	}
}

func TestLifetimes(t *testing.T) {
	m := newModel(t, Config{Seed: 13})
	observed := make([]int, 3)
	halves := make([]int, 2) // of the middle band
	for n := 1; n <= 40_000; n++ {
		switch btl := m.btl(NodeRef(1, n), uint64(n%3)); {
		case btl >= 1_800 && btl <= 10_800:
			observed[0]++
		case btl >= 21_600 && btl < 302_400:
			observed[1]++
			halves[(btl-21_600)/140_400]++
		case btl >= 302_400 && btl <= 1_209_600:
			observed[2]++
		default:
			t.Fatalf("node %d lives %d blocks", n, btl)
		}
	}
	requireChiSquare(t, "lifetimes", observed, []float64{.1, .6, .3})
	requireChiSquare(t, "lifetimes within a band", halves, []float64{.5, .5})
}

func TestTenants(t *testing.T) {
	m := newModel(t, Config{Seed: 14})
	counts := make([]int, Tenants+1)
	const workloads = 200_000
	for w := 1; w <= workloads; w++ {
		tenant := m.source(WorkloadRef(1, w)).tenant()
		require.True(t, tenant >= 1 && tenant <= Tenants)
		counts[tenant]++
	}
	require.InDelta(t, 0.0316, float64(counts[1])/workloads, 0.003, "√(1/1000)")
	require.Positive(t, counts[Tenants])
	ten, hundred := 0, 0
	for tenant := 1; tenant <= 100; tenant++ {
		if hundred += counts[tenant]; tenant <= 10 {
			ten += counts[tenant]
		}
	}
	require.InDelta(t, 0.1, float64(ten)/workloads, 0.005)
	require.InDelta(t, 0.316, float64(hundred)/workloads, 0.01)
}
