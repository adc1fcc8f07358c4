package reporttest

import (
	"math"
	"strconv"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/store/driver"
)

func itoa(n int) string { return strconv.Itoa(n) }

// inserts are A1 to A4.
func (m *maker) inserts() {
	indexCost := map[int]float64{0: 1, 2: 5, 6: 14}
	variants := []struct {
		id, store string
		commit    int
		modes     []string
		indexes   []int
	}{
		{"A1", "memory", 0, []string{"single", "bulk"}, []int{0, 2, 6}},
		{"A2", "file", 10_000, []string{"bulk"}, []int{0, 2, 6}},
		{"A3", "file", 500, []string{"bulk", "single"}, []int{0, 2, 6}},
		{"A4", "file", 500, []string{"single", "batch", "bulk"}, []int{6}},
	}
	for _, v := range variants {
		for _, engine := range m.Engines {
			write, _ := cost(engine)
			for _, indexes := range v.indexes {
				for _, mode := range v.modes {
					c := pairs("engine", engine, "durability", "durable", "store", v.store, "indexes", itoa(indexes),
						"commit", itoa(v.commit), "mode", mode, "rows", "50000")
					m.add(v.id, "Insert", c, func(r *result.Record) {
						rate := 1e6 / indexCost[indexes] / write * m.noise(0.05)
						m.latencies(r, "commit", 500/rate*1000, 0.3)
						headline(r)
						metric(r, "rows/s", rate)
					})
				}
			}
		}
	}
}

// payloads are the sizes of the profiles, in bytes.
var payloads = []struct {
	name  string
	rows  float64
	bytes float64
}{
	{"typical", 9, 5120}, {"large", 16, 51200}, {"minimal", 4, 1024},
	{"typical-256B", 9, 256}, {"large-256B", 16, 256}, {"minimal-256B", 4, 256},
}

// commit fills a record of commits of a hundred entities.
func (m *maker) commit(r *result.Record, rows, bytes, factor float64) {
	perEntity := (0.02*rows + bytes/51200*0.4) * factor * m.noise(0.04) // ms
	m.latencies(r, "commit", perEntity*100, 0.35)
	headline(r)
	metric(r, "rows/s", rows/perEntity*1000)
	metric(r, "ent/s", 1000/perEntity)
	metric(r, "db-MB", (rows*120+bytes)*5000/1e6)
	metric(r, "B/ent", rows*120*factor+bytes)
}

// commits are A5 to A7 and A11 to A13.
func (m *maker) commits() {
	for _, engine := range m.Engines {
		write, read := cost(engine)
		for _, x := range [][2]string{{"A5", "arkiv"}, {"A6", "simple"}} {
			for _, p := range payloads {
				c := pairs("engine", engine, "layout", x[1], "profile", p.name, "durability", "durable", "entities", "5000")
				m.add(x[0], "Commit", c, func(r *result.Record) { m.commit(r, p.rows, p.bytes, write*weight(x[1])) })
			}
		}
		for _, part := range []string{"0.1", "0.5", "1.5"} {
			c := pairs("engine", engine, "layout", "arkiv", "profile", "memory", "durability", "durable", "memory", part)
			m.add("A7", "Commit", c, func(r *result.Record) { m.commit(r, 18, 51200, write) })
		}
		for n := range 14 {
			layout := "arkiv-" + itoa(n)
			c := pairs("engine", engine, "layout", layout, "profile", "typical", "durability", "durable", "entities", "5000")
			m.add("A11", "Commit", c, func(r *result.Record) { m.commit(r, 9, 5120, write*(0.3+0.055*float64(n))) })
			for _, mix := range []string{"A", "B", "C"} {
				c := pairs("engine", engine, "layout", layout, "durability", "durable", "mix", mix, "clients", "1", "loop", "closed")
				m.add("A12", "ReadMix", c, func(r *result.Record) { m.mix(r, mix, read*math.Max(1, 12-float64(n))) })
			}
		}
		m.storage(engine, write)
	}
}

func (m *maker) storage(engine string, write float64) {
	for _, durability := range []string{"durable", "relaxed", "unsafe"} {
		for _, store := range []string{"disk", "tmpfs"} {
			factor := write
			if durability != "durable" || store == "tmpfs" {
				factor *= 0.8
			}
			c := pairs("engine", engine, "layout", "arkiv", "profile", "typical", "durability", durability, "store", store)
			m.add("A13", "Commit", c, func(r *result.Record) {
				metric(r, "fsync-us", map[string]float64{"disk": 150, "tmpfs": 1}[store]*m.noise(0.1))
				m.commit(r, 9, 5120, factor)
			})
		}
	}
}

// drivers are A8 and A14.
func (m *maker) drivers() {
	for _, engine := range m.Engines {
		write, _ := cost(engine)
		for _, layout := range []string{"arkiv", "simple"} {
			factor := write * weight(layout)
			c := pairs("engine", engine, "layout", layout, "profile", "mendoza", "durability", "durable", "blocks", "400")
			m.add("A8", "SampledBlocks", c, func(r *result.Record) { m.sampled(r, factor) })
			c = pairs("engine", engine, "layout", layout, "durability", "durable")
			m.add("A14", "Designed", c, func(r *result.Record) { m.designed(r, factor) })
		}
	}
}

func (m *maker) sampled(r *result.Record, factor float64) {
	r.Table = &result.Table{Columns: []string{"block", "entities", "strings", "numbers", "payload_bytes", "ms"}}
	for b := range 400 {
		entities := math.Ceil(math.Exp(m.random.NormFloat64()*1.3 + 0.5))
		strings, numbers := entities*15, entities*9
		took := factor * (2 + 0.02*(strings+numbers)) * m.noise(0.2)
		r.Table.Rows = append(r.Table.Rows, []float64{float64(b), entities, strings, numbers, 5120 * entities * m.noise(0.3), took})
	}
	m.latencies(r, "commit", 4*factor, 0.9)
	headline(r)
	for _, v := range []struct {
		name string
		r    float64
	}{{"entities", 0.9}, {"attributes", 0.96}, {"strings", 0.97}, {"numbers", 0.94}, {"payload", 0.88}, {"payload-each", -0.06}} {
		metric(r, "r-"+v.name, v.r-0.02*m.random.Float64())
	}
}

func (m *maker) designed(r *result.Record, factor float64) {
	r.Table = &result.Table{Columns: []string{"attributes", "payload_bytes", "entities", "ms"}}
	for range 4 {
		for _, a := range []float64{2, 8, 24} {
			for _, p := range []float64{256, 5120, 51200} {
				for _, e := range []float64{10, 40, 120} {
					took := factor*e*(0.05+0.012*a+0.006*p/1024)*m.noise(0.08) + 1
					r.Table.Rows = append(r.Table.Rows, []float64{a, p, e, took})
				}
			}
		}
	}
	m.latencies(r, "commit", 15*factor, 0.8)
	headline(r)
}

// mixKinds are the kinds of the read mixes with what they cost in ms.
var mixKinds = map[string][]struct {
	kind string
	cost float64
}{
	"A": {{"get", 0.02}, {"status=pending", 1.8}, {"allocatable_gpu>", 1.1}, {"$creator", 1.4}, {"at-block", 0.05}, {"payload", 0.02}},
	"B": {{"get", 0.02}, {"proposalKey", 4.2}, {"$creator-votes", 2.2}, {"status=active", 1.7}, {"type=proposal", 1.6}, {"at-block", 0.05}, {"full", 0.04}},
	"C": {{"latest", 1.2}, {"get", 0.02}, {"nextBlockId", 0.06}, {"block-range", 1.5}, {"payload", 0.02}, {"$creator-latest", 0.9}},
}

func (m *maker) mix(r *result.Record, mix string, factor float64) {
	var sum float64
	for _, k := range mixKinds[mix] {
		m.latencies(r, k.kind, k.cost*factor*m.noise(0.05), 0.4)
		sum += k.cost
	}
	metric(r, "qps", 1000*float64(len(mixKinds[mix]))/sum/factor*m.noise(0.03))
}

// reads are C1 to C3.
func (m *maker) reads() {
	for _, engine := range m.Engines {
		_, read := cost(engine)
		for _, layout := range m.Layouts {
			factor := read * weight(layout)
			for _, mix := range []string{"A", "B", "C"} {
				for _, clients := range []string{"1", "10"} {
					c := pairs("engine", engine, "layout", layout, "durability", "durable", "scale", "0.05", "mix", mix, "clients", clients, "loop", "closed")
					m.add("C1", "ReadMix", c, func(r *result.Record) { m.mix(r, mix, factor) })
				}
			}
		}
		for _, rate := range []int{100, 1000, 5000, 10_000} {
			c := pairs("engine", engine, "layout", "arkiv", "durability", "durable", "scale", "0.05", "mix", "A", "clients", "10", "loop", "open-"+itoa(rate))
			m.add("C2", "ReadMix", c, func(r *result.Record) {
				m.mix(r, "A", read*(1+float64(rate)/2000))
				r.Metrics[0].Value = math.Min(float64(rate), 4000/read)
				metric(r, "late", math.Max(0, float64(rate)-4000/read))
				metric(r, "skipped", 0)
				metric(r, "lag-ms", float64(rate)/1000)
			})
		}
		for i, temperature := range []string{"cold", "lukewarm", "warm"} {
			c := pairs("engine", engine, "layout", "arkiv", "durability", "durable", "scale", "0.05", "mix", "A", "temperature", temperature)
			m.add("C3", "ReadMix", c, func(r *result.Record) {
				m.mix(r, "A", read*float64(4-i))
				metric(r, "resident-before", []float64{0.01, 1, 1}[i])
				metric(r, "resident-after", []float64{0.2, 1, 1}[i])
			})
		}
	}
}

// Crash is what a record of an engine that died says.
const Crash = "engine process ended: signal: killed"

// writes are D1 to D5.
func (m *maker) writes() {
	for _, engine := range m.Engines {
		write, read := cost(engine)
		for _, layout := range m.Layouts {
			factor := write * weight(layout)
			base := pairs("engine", engine, "layout", layout, "profile", "mendoza", "durability", "durable", "scale", "0.05")
			m.add("D1", "Sustained", base.With("rate", "6000"), func(r *result.Record) { m.sustained(r, 12*factor, 15, 5990) })
			m.add("D1", "Sustained", base.With("rate", "max"), func(r *result.Record) { m.sustained(r, 9*factor, 8, 31_000/factor) })
			m.add("D3", "Reorg", base, func(r *result.Record) {
				m.sustained(r, 9*factor, 20, 500*20)
				metric(r, "growth-MB", 14*m.noise(0.1))
			})
			m.combined(base, factor, read)
			for i, scale := range []string{"0.01", "0.05", "0.2"} {
				m.add("D5", "Degradation", base.With("scale", scale), func(r *result.Record) {
					m.latencies(r, "commit", 8*factor*math.Pow(1.6, float64(i)), 0.4)
					headline(r)
					metric(r, "rows/s", 5990)
					for _, mix := range []string{"A", "B", "C"} {
						m.latencies(r, "mix-"+mix, 1.1*read*math.Pow(1.2, float64(i)), 0.8)
						metric(r, "qps-"+mix, 900/read/math.Pow(1.2, float64(i)))
						metric(r, "p99-ms-"+mix, 7*read*math.Pow(1.2, float64(i)))
					}
				})
			}
		}
		m.checkpoints(engine, write)
	}
	last := pairs("engine", "duckdb", "layout", "arkiv", "profile", "mendoza", "durability", "durable", "scale", "1")
	m.add("D5", "Degradation", last, func(r *result.Record) { r.Error = Crash })
}

func (m *maker) sustained(r *result.Record, median, every, rate float64) {
	m.latencies(r, "commit", median, 0.5)
	headline(r)
	metric(r, "rows/s", rate*m.noise(0.001))
	m.timeline(r, median, every)
	metric(r, "wal-MB", 62*m.noise(0.1))
	metric(r, "resident", 0.99)
}

func (m *maker) combined(base result.Config, factor, read float64) {
	for i, qps := range []string{"0", "100", "1000", "5000", "ceiling"} {
		m.add("D4", "Combined", base.With("mix", "A").With("rate", "6000").With("qps", qps), func(r *result.Record) {
			m.sustained(r, 12*factor*(1+0.4*float64(i)), 15, 5990)
			reached := 9000 / read * m.noise(0.02)
			if asked, err := strconv.ParseFloat(qps, 64); err == nil {
				reached = math.Min(asked, reached)
			}
			metric(r, "qps", reached)
			if qps == "ceiling" {
				metric(r, "ceiling-qps", reached)
			}
			for _, k := range mixKinds["A"] {
				m.latencies(r, k.kind, k.cost*read*(1+0.2*float64(i)), 0.5)
			}
		})
	}
}

func (m *maker) checkpoints(engine string, write float64) {
	for _, policy := range []string{"inline", "background", "manual"} {
		for _, frames := range []int{1000, 10_000} {
			c := pairs("engine", engine, "layout", "arkiv", "profile", "mendoza", "durability", "durable", "scale", "0.05",
				"policy", policy, "frames", itoa(frames))
			m.add("D2", "Checkpoint", c, func(r *result.Record) {
				m.sustained(r, 12*write, float64(frames)/200+5, 5990)
				m.latencies(r, "with-checkpoint", 60*write, 0.3)
				m.latencies(r, "without-checkpoint", 11*write, 0.3)
			})
		}
	}
}

// dataCentre are E1 to E3.
func (m *maker) dataCentre() {
	kinds := []string{"nodes-in-dc", "available-gpu", "workloads-on-node", "pending", "match", "at-block"}
	for _, engine := range m.Engines {
		write, read := cost(engine)
		for _, layout := range m.Layouts {
			base := pairs("engine", engine, "layout", layout, "durability", "durable", "scale", "0.01")
			for _, clients := range []string{"1", "10"} {
				m.add("E1", "DataCentreRead", base.With("clients", clients), func(r *result.Record) { m.kinds(r, kinds, read*weight(layout)) })
			}
			for _, share := range []string{"0", "30", "70", "100"} {
				m.add("E2", "DataCentreWrite", base.With("dc", share), func(r *result.Record) { m.commit(r, 9, 10_240, write*weight(layout)) })
			}
			for _, qps := range []string{"100", "1000"} {
				m.add("E3", "DataCentreCombined", base.With("qps", qps), func(r *result.Record) {
					m.commit(r, 9, 10_240, write*weight(layout))
					m.kinds(r, kinds, read*weight(layout))
				})
			}
		}
	}
}

func (m *maker) kinds(r *result.Record, kinds []string, factor float64) {
	for i, kind := range kinds {
		m.latencies(r, kind, (0.2+0.4*float64(i))*factor*m.noise(0.05), 0.4)
	}
	metric(r, "qps", 900/factor*m.noise(0.03))
}

// manifest is what an engine's runs were measured with.
func manifest(engine string) bench.Manifest {
	return bench.Manifest{
		Varve:  bench.Revision{Go: "go1.26.0", Commit: "0123456789abcdef0123456789abcdef01234567"},
		Engine: bench.EngineVersion{Name: engine, Version: "3.1", Library: "example.com/" + engine},
		Settings: []driver.Setting{
			{Name: "journal_mode", Value: "wal"}, {Name: "synchronous", Value: "full"}, {Name: "cache", Value: "256 MiB"},
		},
		Options: bench.StoreOptions{Durability: driver.Durable, MemoryBytes: 256 << 20},
		Layout:  "arkiv",
		Host: bench.Host{
			OS: "linux", Arch: "amd64", Kernel: "6.1", CPU: "Example CPU", Cores: 2, MaxProcs: 2, MemoryBytes: 24 << 30, Filesystem: "ext4",
			Fsync: bench.Fsync{Samples: 64, Median: 150 * time.Microsecond, Max: 900 * time.Microsecond},
		},
	}
}
