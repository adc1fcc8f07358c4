package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// verifyCmd checks a store.
type verifyCmd struct {
	URL     string `arg:"" store:"" help:"Store to check."`
	Against string `store:"" help:"Source that the store was made of: its entities must be those of the source, or their copies when it was scaled." placeholder:"SRC"`
	JSON    bool   `help:"Print the result as JSON."`
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
	v.Outcome = store.Sound
	switch {
	case errors.Is(err, store.ErrCorrupt):
		v.add(false, "store", "%s", driver.Hide(err.Error(), urls...))
	case err != nil:
		v.Outcome = store.NotChecked
		v.Findings = append(v.Findings, finding{Check: "the rest", Detail: driver.Hide(err.Error(), urls...), Outcome: v.Outcome})
	}
	if v.Failed > 0 {
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
	db, ents, err := e.openEntities(c.URL, readOnly, store.EntityOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
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
		return foundError{fmt.Errorf("%d of %d checks failed", v.Failed, len(v.Findings))}
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
		return c.against(e, summary, ents, v)
	case !known:
		v.add(true, "origin", "not generated here; give --against SOURCE to compare with what it was made of")
		return nil
	}
	want, err := g.Plan()
	if err != nil {
		return err
	}
	v.equal("first block", summary.First, want.First)
	v.equal("last block", summary.Head, want.Last)
	v.equal("blocks", summary.Blocks, want.Blocks)
	return checkGenerated(e, g, want, summary, ents, v)
}

// checkGenerated compares entities, and the rows of the base profile, with what was generated.
func checkGenerated(e *env, g source.Generated, want source.Amount, s store.Summary, ents *store.Entities, v *verification) error {
	if s.Horizon > s.First {
		return fmt.Errorf("entities: %w: the store knows of no block before %d", store.ErrUnsupported, s.Horizon)
	}
	if g.Model == "mendoza" {
		t, err := scaler.Plan(scaler.Mendoza(), g.Options(0))
		if err != nil {
			return err
		}
		v.equal("entities visible at the head", s.Live, t.Live)
		rows := map[string]uint64{"string_attributes": t.TextRows, "numeric_attributes": t.NumberRows, "payloads": t.PayloadRows}
		for _, table := range slices.Sorted(maps.Keys(rows)) {
			if n, stored := s.Tables[table]; stored {
				v.equal("rows of "+table, n, rows[table])
			}
		}
	}
	blocks, err := g.Blocks(0)
	if err != nil {
		return err
	}
	return checkCreated(e, ents, blocks, want.Entities, v)
}

// against compares with a source, or with its copies where the store was scaled from one.
func (c *verifyCmd) against(e *env, s store.Summary, ents *store.Entities, v *verification) (err error) {
	fmt.Fprintln(e.stderr, "verify: against", driver.Redact(c.Against))
	src, err := openSource(e.ctx, c.Against)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	blocks := src.Reopen()
	if o, scaled := parseScaled(s.Origin); scaled {
		blocks = scaler.Scale(src.Reopen, o)
	}
	return checkCreated(e, ents, blocks, 0, v)
}

// checkCreated compares each entity as it was created with that of a stream, up to the first
// that differs: of two histories the creations are what both tell, whatever else one of them
// has forgotten. Total is how many there are, 0 when that is not known.
func checkCreated(e *env, ents *store.Entities, blocks iter.Seq2[entity.Block, error], total uint64, v *verification) error {
	if !ents.Temporal() {
		return fmt.Errorf("entities: %w: layout %s does not keep them as they were created", store.ErrUnsupported, ents.Layout())
	}
	bar := startBar(e.stderr, "verify: entities", "entities", int64(total))
	defer bar.Finish()
	next, stop := iter.Pull2(created(entity.Operations(ents.History(e.ctx))))
	defer stop()
	n := int64(0)
	for want, err := range created(blocks) {
		has, failed, _ := next()
		if err = cmp.Or(err, failed, e.ctx.Err()); err != nil {
			return err
		}
		if !alike(has, want) {
			v.add(false, "entities", "%d are right, then the store has %s, expected %s", n, summed(has), summed(want))
			return nil
		}
		n++
		bar.Set(n)
	}
	has, err, more := next()
	switch {
	case err != nil:
		return err
	case more:
		v.add(false, "entities", "%d are right, then the store has %s, expected none", n, summed(has))
	default:
		v.add(true, "entities", "%d are as they were created", n)
	}
	return nil
}

// summed names an entity in a message.
func summed(x *entity.Entity) string {
	if x == nil {
		return "none"
	}
	return fmt.Sprintf("%s of block %d with %d bytes and %s", x.Key, x.CreatedAtBlock(), len(x.Content), attributes(x))
}

// alike tells whether two entities are the same, but for who created them: of one that
// changed its owner in its first block a history does not tell that.
func alike(a, b *entity.Entity) bool {
	return a != nil && a.Key == b.Key && a.Owner == b.Owner && a.Sequence == b.Sequence && a.Expiration == b.Expiration &&
		a.ContentType == b.ContentType && bytes.Equal(a.Content, b.Content) &&
		maps.Equal(a.StringAttributes, b.StringAttributes) && maps.Equal(a.NumericAttributes, b.NumericAttributes)
}

// created streams the entities that blocks create, as they are at the end of their first
// block, by key within it.
func created(blocks iter.Seq2[entity.Block, error]) iter.Seq2[*entity.Entity, error] {
	return func(yield func(*entity.Entity, error) bool) {
		for b, err := range blocks {
			begun := map[entity.Key]bool{}
			b.Ops = slices.DeleteFunc(slices.Clone(b.Ops), func(op entity.Op) bool { // what befalls others, or a former life
				begun[op.Key] = begun[op.Key] || op.Kind == entity.Create
				return !begun[op.Key]
			})
			var set entity.Changeset
			if err == nil {
				set, err = entity.Fold(&b, nil, entity.Rules{Pruned: true})
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, c := range set.Changes {
				if c.New != nil && !yield(c.New, nil) {
					return
				}
			}
		}
	}
}
