package cli

import (
	"errors"
	"fmt"
	"iter"

	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/internal/progress"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// verifyCmd checks a store.
type verifyCmd struct {
	URL     string  `arg:"" store:"" help:"Store to check."`
	Against string  `store:"" help:"Source that the store was scaled from: its distributions must be the same." placeholder:"SRC"`
	Factor  uint64  `min:"1" max:"1000000" help:"With --against: how many times the source's entities the store must hold." default:"1"`
	Level   float64 `above:"0" max:"1" help:"Probability at which a distribution counts as another, after Bonferroni's correction." default:"0.001"`
	JSON    bool    `help:"Print the result as JSON."`
}

// finding is one check and its outcome.
type finding struct {
	Check   string        `json:"check"`
	Detail  string        `json:"detail"`
	OK      bool          `json:"ok"`
	Outcome store.Outcome `json:"outcome"`
}

// verification collects findings.
type verification struct {
	Outcome  store.Outcome      `json:"outcome"`
	Parts    []store.PartReport `json:"parts"` // of the store against itself
	Findings []finding          `json:"findings"`
	Failed   int                `json:"failed"`
}

func (v *verification) add(ok bool, check, format string, args ...any) {
	f := finding{Check: check, Detail: fmt.Sprintf(format, args...), OK: ok, Outcome: store.Sound}
	if !ok {
		f.Outcome = store.Damaged
		v.Failed++
	}
	v.Findings = append(v.Findings, f)
}

// end adds the error that ended the checks, without the secrets of its URLs, and says
// what has come of all.
func (v *verification) end(err error, urls ...string) {
	switch store.OutcomeOf(err) {
	case store.Damaged:
		v.add(false, "store", "%s", driver.Hide(err.Error(), urls...))
	case store.NotChecked:
		v.Findings = append(v.Findings, finding{Check: "the rest", Detail: driver.Hide(err.Error(), urls...), Outcome: store.NotChecked})
	}
	if v.Outcome = store.OutcomeOf(err); v.Failed > 0 {
		v.Outcome = store.Damaged
	}
}

func (v *verification) equal(check string, got, want uint64) {
	v.add(got == want, check, "%d, expected %d", got, want)
}

// Help implements kong.HelpProvider.
func (c *verifyCmd) Help() string { return checkExitCodes }

// Run verifies. It fails when any check does, or could not be made.
func (c *verifyCmd) Run(e *env) error { return judged(c.run(e)) }

func (c *verifyCmd) run(e *env) (err error) {
	db, err := store.Open(e.ctx, c.URL, &store.Options{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ents, err := db.Entities(e.ctx, store.EntityOptions{})
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	v := &verification{}
	if err = c.check(e, ents, v); errors.As(err, new(usageError)) {
		return err
	}
	v.end(err, c.URL, c.Against)
	if c.JSON {
		err = errors.Join(err, printJSON(e.stdout, v))
	} else {
		marks := map[store.Outcome]string{store.Sound: "ok    ", store.Damaged: "FAILED", store.NotChecked: "NOT CHECKED"}
		for _, f := range v.Findings {
			fmt.Fprintf(e.stdout, "%s %s: %s\n", marks[f.Outcome], f.Check, f.Detail)
		}
	}
	if v.Failed > 0 {
		return foundError{fmt.Errorf("verify: %d of %d checks failed", v.Failed, len(v.Findings))}
	}
	return err
}

func (c *verifyCmd) check(e *env, ents *store.Entities, v *verification) error {
	fmt.Fprintln(e.stderr, "verify: the store against itself")
	self, err := ents.Verify(e.ctx)
	v.Parts = self.Parts
	switch {
	case err != nil:
		return err
	case self.Digest:
		v.add(true, "store", "%d changes, digest %s computed anew", self.Changes, self.Head.Digest)
	default:
		v.add(true, "store", "rows agree; the digest cannot be computed without the whole history")
	}
	summary, err := ents.Summary(e.ctx)
	if err != nil {
		return err
	}
	g, known := source.ParseOrigin(summary.Origin)
	switch {
	case c.Against != "":
		return c.against(e, ents, v)
	case !known:
		v.add(true, "origin", "not generated here; give --against SOURCE to compare with what it was made of")
		return nil
	case g.Model == "dc":
		if _, err := checkBlocks(g, summary, v); err != nil {
			return err
		}
		return checkAnswers(e, g, ents, v)
	}
	return c.checkDistributions(e, g, summary, ents, v)
}

// collect reads the distributions of a store's history, which takes as long as
// checking its digest.
func collect(e *env, ents *store.Entities) (*scaler.Distributions, error) {
	fmt.Fprintln(e.stderr, "verify: distributions")
	return scaler.Collect(created(entity.Operations(ents.History(e.ctx))))
}

// created leaves only the creations of a stream, which is what distributions
// are about and what a history and a feed have in common.
func created(blocks iter.Seq2[entity.Block, error]) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		for b, err := range blocks {
			kept := b.Ops[:0:0]
			for i := range b.Ops {
				if b.Ops[i].Kind == entity.Create {
					kept = append(kept, b.Ops[i])
				}
			}
			b.Ops = kept
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// checkBlocks compares the range of blocks with what was generated.
func checkBlocks(g source.Generated, s store.Summary, v *verification) (want source.Amount, err error) {
	if want, err = g.Plan(); err != nil {
		return want, err
	}
	v.equal("first block", s.First, want.First)
	v.equal("last block", s.Head, want.Last)
	v.equal("blocks", s.Blocks, want.Blocks)
	return want, nil
}

// checkDistributions compares counts, rows and distributions with what was
// generated.
func (c *verifyCmd) checkDistributions(e *env, g source.Generated, s store.Summary, ents *store.Entities, v *verification) error {
	want, err := checkBlocks(g, s, v)
	if err != nil {
		return err
	}
	seen, err := collect(e, ents)
	if err != nil {
		return err
	}
	v.equal("entities created", seen.Entities, want.Entities)
	t, err := scaler.Plan(scaler.Mendoza(), g.Options(0))
	if err != nil {
		return err
	}
	v.equal("entities visible at the head", s.Live, t.Live)
	rows := map[string]uint64{"string_attributes": t.TextRows, "numeric_attributes": t.NumberRows, "payloads": t.PayloadRows}
	for _, table := range s.Tables {
		if n, planned := rows[table.Table]; planned {
			v.equal("rows of "+table.Table, table.Rows, n)
		}
	}
	profile := scaler.Mendoza()
	addTests(v, profile.Check(seen), c.Level)
	return nil
}

func addTests(v *verification, tests []scaler.Test, level float64) {
	rejected := map[string]bool{}
	for _, t := range scaler.Rejected(tests, level) {
		rejected[t.Name] = true
	}
	for _, t := range tests {
		v.add(!rejected[t.Name], "distribution of "+t.Name, "%s", t)
	}
}

// against compares with a source.
func (c *verifyCmd) against(e *env, ents *store.Entities, v *verification) (err error) {
	seen, err := collect(e, ents)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.stderr, "verify: against", driver.Redact(c.Against))
	src, err := openSource(e.ctx, c.Against)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	want, err := scaler.Collect(created(src.Reopen()))
	if err != nil {
		return err
	}
	v.equal("entities created", seen.Entities, want.Entities*c.Factor)
	addTests(v, scaler.Compare(seen, want, scaler.DefaultReferences()), c.Level)
	return nil
}

// checkAnswers asks every question of the data-centre model that has one answer
// for a data centre, at the head and at past blocks, and samples of those about
// single nodes.
func checkAnswers(e *env, g source.Generated, ents *store.Entities, v *verification) error {
	m, err := g.Centre()
	if err != nil {
		return err
	}
	oracle := dcseed.NewOracle(m)
	head, err := ents.Head(e.ctx)
	if err != nil {
		return err
	}
	blocks := []uint64{head.Block}
	if first := m.FirstLoadBlock() - 1; ents.Temporal() && head.Block > first {
		blocks = append(blocks, (first+head.Block)/2, first)
	}
	for _, block := range blocks {
		asked, wrong, err := askModel(e, ents, m, oracle, block)
		if err != nil {
			return err
		}
		for _, w := range wrong {
			v.add(false, "answer", "%v", w)
		}
		v.add(len(wrong) == 0, fmt.Sprintf("answers at block %d", block), "%d asked, %d wrong", asked, len(wrong))
	}
	return nil
}

// sampledNodes is how many nodes of a data centre are asked about one by one.
const sampledNodes = 20

func askModel(e *env, ents *store.Entities, m *dcseed.Model, oracle *dcseed.Oracle, block uint64) (asked int, wrong []error, err error) {
	snap, err := ents.At(e.ctx, block)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	list := questions(m, block)
	bar := progress.Start(e.stderr, fmt.Sprintf("verify: answers at block %d", block), "questions", int64(len(list)))
	defer bar.Finish()
	for _, q := range list {
		asked++
		if err := askOne(e, snap, q, oracle); errors.Is(err, dcseed.ErrMismatch) {
			wrong = append(wrong, err)
		} else if err != nil {
			return asked, wrong, err
		}
		bar.Set(int64(asked))
	}
	return asked, wrong, nil
}

// questions are what is asked at a block.
func questions(m *dcseed.Model, block uint64) (list []dcseed.Query) {
	c := m.Config()
	for dc := 1; dc <= c.DCs; dc++ {
		list = append(list, m.NodesInDC(dc, block), m.AvailableGPUNodes(dc, block), m.PendingWorkloads(dc, block))
		for i := range min(sampledNodes, c.NodesPerDC) {
			n := 1 + i*c.NodesPerDC/sampledNodes%c.NodesPerDC
			list = append(list, m.WorkloadsOnNode(dc, n, block), m.NodeState(dc, n, block))
			if n <= c.WorkloadsPerDC {
				list = append(list, m.NodeMatch(dc, n, block))
			}
		}
	}
	return list
}

// askOne asks a question and compares the answer.
func askOne(e *env, snap *store.Snapshot, q dcseed.Query, oracle *dcseed.Oracle) error {
	var got dcseed.Answer
	if q.Kind == dcseed.NodeState {
		ent, err := snap.Get(e.ctx, q.Key())
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		got.Entity = ent
		return oracle.Verify(q, got)
	}
	opts := &store.QueryOptions{Limit: q.Limit, Parts: store.Metadata}
	if q.OrderBy != "" {
		opts.Order = []store.Order{{Name: q.OrderBy, Kind: entity.Numeric}}
	}
	for ent, err := range snap.Query(e.ctx, q.Expr, opts) {
		if err != nil {
			return err
		}
		got.Keys = append(got.Keys, ent.Key)
	}
	return oracle.Verify(q, got)
}
