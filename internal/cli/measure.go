package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/feed"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/testdata"
)

// measureFlags say what compare measures; each engine's process gets the same.
type measureFlags struct {
	Layout     string `help:"Entity layout." default:"arkiv"`
	Durability string `help:"What a commit promises: durable, relaxed or unsafe." default:"durable"`
	Memory     string `help:"Memory that an engine may use for caching." default:"256MiB"`
	Profile    string `help:"Shape of the generated entities: minimal, typical, large, or with a payload such as typical-256B." default:"typical"`
	Entities   int    `help:"Generated entities that the store holds before commits are measured." default:"5000"`
	Commits    int    `help:"Commits to measure, of 100 generated entities each." default:"50"`
	Dir        string `help:"Directory for the databases, which are removed afterwards; the system's temporary directory when not given." type:"existingdir"`
}

// args returns the flags as a command line, but for the directory: a child is given one.
func (f *measureFlags) args() []string {
	return []string{
		"--layout=" + f.Layout, "--durability=" + f.Durability, "--memory=" + f.Memory, "--profile=" + f.Profile,
		fmt.Sprintf("--entities=%d", f.Entities), fmt.Sprintf("--commits=%d", f.Commits),
	}
}

func (f *measureFlags) check() error {
	if _, err := driver.ParseDurability(f.Durability); err != nil {
		return usageError{err}
	}
	if _, err := store.ParseBytes(f.Memory); err != nil {
		return usageError{fmt.Errorf("--memory: %w", err)}
	}
	if _, err := bench.ParseProfile(f.Profile); err != nil {
		return usageError{err}
	}
	if f.Entities < 100 || f.Commits < 1 {
		return usageError{errors.New("--entities must be 100 or more and --commits 1 or more")}
	}
	return nil
}

// measurement is what one engine's process reports.
type measurement struct {
	Engine   driver.Info      `json:"engine"`
	Layout   string           `json:"layout"`
	Host     bench.Host       `json:"host"`
	Settings []driver.Setting `json:"settings"`
	Real     part             `json:"real_blocks"`
	Made     part             `json:"generated_blocks"`
}

// part is what was measured on one data set.
type part struct {
	Commit   bench.Summary `json:"commit"`
	Rows     uint64        `json:"rows"`
	RowsRate float64       `json:"rows_per_second"` // over the time inside Apply
	Get      bench.Summary `json:"get"`
	Query    bench.Summary `json:"query"`
	Entities uint64        `json:"entities"` // visible at the end
	Bytes    float64       `json:"bytes_per_entity"`
	Stats    driver.Stats  `json:"stats"` // at the end, the log folded in
	Digest   string        `json:"digest"`
	Took     time.Duration `json:"took_ns"`
}

// workerCmd measures one engine in this process.
type workerCmd struct {
	measureFlags
	Engine string `required:"" help:"Engine to measure."`
}

// Run measures and prints a measurement as JSON.
func (c *workerCmd) Run(e *env) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(c.Dir, "varve-compare-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var m measurement
	if m.Host, err = bench.ReadHost(dir); err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "%s: real blocks\n", c.Engine)
	if m.Real, err = c.measure(e.ctx, filepath.Join(dir, "real"), &m, c.realBlocks); err != nil {
		return fmt.Errorf("real blocks: %w", err)
	}
	fmt.Fprintf(e.stderr, "%s: generated blocks, %d entities and %d commits\n", c.Engine, c.Entities, c.Commits)
	if m.Made, err = c.measure(e.ctx, filepath.Join(dir, "made"), &m, c.madeBlocks); err != nil {
		return fmt.Errorf("generated blocks: %w", err)
	}
	return json.NewEncoder(e.stdout).Encode(m)
}

// measure runs f on a new store and adds what the store says of itself.
func (c *workerCmd) measure(ctx context.Context, path string, m *measurement, f func(context.Context, *store.Entities, *part) error) (p part, err error) {
	memory, err := store.ParseBytes(c.Memory)
	if err != nil {
		return p, err
	}
	db, err := store.Open(ctx, c.Engine+"://"+path, &store.Options{Durability: driver.Durability(c.Durability), Memory: memory})
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ents, err := db.Entities(ctx, store.EntityOptions{Layout: c.Layout})
	if err != nil {
		return p, err
	}
	start := time.Now()
	if err := f(ctx, ents, &p); err != nil {
		return p, err
	}
	p.Took = time.Since(start)
	m.Engine, m.Layout = db.Engine().Info(), ents.Layout()
	if m.Settings, err = db.Settings(ctx); err != nil {
		return p, err
	}
	return p, p.sizes(ctx, db, ents)
}

// sizes adds the sizes after the log was folded into the database.
func (p *part) sizes(ctx context.Context, db *store.DB, ents *store.Entities) error {
	if err := bench.FoldLog(ctx, db); err != nil {
		return err
	}
	summary, err := ents.Summary(ctx)
	if err != nil {
		return err
	}
	if p.Stats, err = db.Stats(ctx); err != nil {
		return err
	}
	p.Entities, p.Digest = summary.Live, summary.Digest
	if n := p.Stats.DatabaseBytes; n != nil && summary.Live > 0 {
		p.Bytes = float64(*n) / float64(summary.Live)
	}
	return nil
}

// commits adds the figures of a write workload.
func (p *part) commits(r bench.Result) {
	p.Commit, p.Rows = r.Latency.Summary(), r.Rows
	if total := r.Latency.Total().Seconds(); total > 0 {
		p.RowsRate = float64(r.Rows) / total
	}
}

// realBlocks applies the embedded Arkiv blocks and asks the recorded queries.
func (c *workerCmd) realBlocks(ctx context.Context, ents *store.Entities, p *part) error {
	blocks, err := bench.Tar()
	if err != nil {
		return err
	}
	res, err := bench.ApplyTar(ctx, ents, bench.TarConfig{Blocks: blocks})
	if err != nil {
		return err
	}
	p.commits(res)
	if p.Query, err = recordedQueries(ctx, ents); err != nil {
		return err
	}
	p.Get, err = getAll(ctx, ents)
	return err
}

// recordedQueries asks the recorded queries at their blocks, compares the
// answers, and returns the latency of each query read to its end.
func recordedQueries(ctx context.Context, ents *store.Entities) (bench.Summary, error) {
	list, err := feed.ParseRecordedQueries(testdata.ArkivQueries)
	if err != nil {
		return bench.Summary{}, err
	}
	rec := bench.NewRecorder()
	for _, q := range list {
		expr, err := query.Parse(q.Query)
		if err != nil {
			return bench.Summary{}, err
		}
		if !ents.Temporal() && q.AtBlock != bench.TarHead {
			continue
		}
		took, err := askAt(ctx, ents, expr, q.AtBlock, q.Keys)
		if err != nil {
			return bench.Summary{}, fmt.Errorf("%s at block %d: %w", q.Query, q.AtBlock, err)
		}
		rec.Record(took)
	}
	return rec.Summary(), nil
}

// askAt runs a query at a block and compares the keys it finds.
func askAt(ctx context.Context, ents *store.Entities, expr query.Expr, at uint64, want []store.Key) (time.Duration, error) {
	snap, err := ents.At(ctx, at)
	if err != nil {
		return 0, err
	}
	defer snap.Close()
	wanted := make(map[store.Key]bool, len(want))
	for _, key := range want {
		wanted[key] = true
	}
	start := time.Now()
	found := 0
	for e, err := range snap.Query(ctx, expr, nil) {
		if err != nil {
			return 0, err
		}
		if !wanted[e.Key] {
			return 0, fmt.Errorf("%w: %s should not match", bench.ErrMismatch, e.Key)
		}
		found++
	}
	took := time.Since(start)
	if found != len(want) {
		return 0, fmt.Errorf("%w: %d entities match, want %d", bench.ErrMismatch, found, len(want))
	}
	return took, nil
}

// getAll reads every visible entity by its key.
func getAll(ctx context.Context, ents *store.Entities) (bench.Summary, error) {
	snap, err := ents.At(ctx, store.Head)
	if err != nil {
		return bench.Summary{}, err
	}
	defer snap.Close()
	var keys []store.Key
	for e, err := range snap.Query(ctx, nil, &store.QueryOptions{Parts: store.Metadata}) {
		if err != nil {
			return bench.Summary{}, err
		}
		keys = append(keys, e.Key)
	}
	rec := bench.NewRecorder()
	for _, key := range keys {
		start := time.Now()
		if _, err := snap.Get(ctx, key); err != nil {
			return bench.Summary{}, err
		}
		rec.Record(time.Since(start))
	}
	return rec.Summary(), nil
}

// made is the seed of the generated entities.
const made = 1

// madeBlocks loads generated entities, measures reads of them, and then commits
// of further ones.
func (c *workerCmd) madeBlocks(ctx context.Context, ents *store.Entities, p *part) error {
	profile, err := bench.ParseProfile(c.Profile)
	if err != nil {
		return err
	}
	gen := bench.GenOptions{Entities: c.Entities, Seed: made}
	expect := bench.NewExpectation(false)
	for b, err := range bench.Blocks(profile, gen) {
		if err == nil {
			err = expect.Apply(&b)
		}
		if err != nil {
			return err
		}
	}
	if _, err := ents.Load(ctx, bench.Blocks(profile, gen), store.LoadOptions{}); err != nil {
		return err
	}
	got, err := bench.Get(ctx, ents, bench.GetConfig{Profile: profile, Of: gen, Seed: made, Loop: bench.Times(2000)})
	if err != nil {
		return err
	}
	p.Get = got.Latency.Summary()
	if p.Query, err = c.queries(ctx, ents, profile, gen); err != nil {
		return err
	}
	res, err := bench.Commit(ctx, ents, bench.CommitConfig{
		Blocks: bench.Blocks(profile, gen.Next(c.Commits*100)), Expect: expect, Loop: bench.Times(c.Commits),
	})
	p.commits(res)
	return err
}

// queries runs the fixed set several times over.
func (c *workerCmd) queries(ctx context.Context, ents *store.Entities, profile bench.Profile, gen bench.GenOptions) (bench.Summary, error) {
	list := bench.Queries()
	answers, err := bench.Answers(profile, gen, list)
	if err != nil {
		return bench.Summary{}, err
	}
	rec := bench.NewRecorder()
	for i := range list {
		res, err := bench.Query(ctx, ents, bench.QueryConfig{Query: list[i], Answer: answers[i], Loop: bench.Times(5)})
		if err != nil {
			return bench.Summary{}, err
		}
		rec.Merge(res.Latency)
	}
	return rec.Summary(), nil
}
