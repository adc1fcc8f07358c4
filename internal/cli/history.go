package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// tally counts changed entities by kind of change. An entity that was updated
// and changed its owner counts in both.
type tally struct {
	Created      int `json:"created"`
	Updated      int `json:"updated"`
	Extended     int `json:"extended"`
	OwnerChanged int `json:"owner_changed"`
	Deleted      int `json:"deleted"`
	Expired      int `json:"expired"`
}

// happened are the names of the kinds of change.
var happened = [...]string{
	entity.Create: "created", entity.Update: "updated", entity.ExtendBTL: "extended",
	entity.ChangeOwner: "owner changed", entity.Delete: "deleted", entity.Expire: "expired",
}

// counts returns the counters in the order of happened.
func (t *tally) counts() [len(happened)]*int {
	return [...]*int{
		entity.Create: &t.Created, entity.Update: &t.Updated, entity.ExtendBTL: &t.Extended,
		entity.ChangeOwner: &t.OwnerChanged, entity.Delete: &t.Deleted, entity.Expire: &t.Expired,
	}
}

// add counts an entity and returns the names of its changes.
func (t *tally) add(kinds ...entity.Kind) (names []string) {
	for _, kind := range kinds {
		*t.counts()[kind]++
		names = append(names, happened[kind])
	}
	return names
}

// String formats the counts.
func (t *tally) String() string {
	var list []string
	for kind, n := range t.counts() {
		if n != nil && *n > 0 {
			list = append(list, fmt.Sprintf("%d %s", *n, happened[kind]))
		}
	}
	if list == nil {
		return "nothing changed"
	}
	return strings.Join(list, ", ")
}

// changed describes what a version changed: new or changed attributes as the
// query language writes them, and the names of removed ones. Before may be nil.
func changed(before, after *entity.Entity) string {
	if before == nil {
		before = &entity.Entity{}
	}
	texts, goneTexts := differing(before.StringAttributes, after.StringAttributes)
	numbers, goneNumbers := differing(before.NumericAttributes, after.NumericAttributes)
	var list []string
	if text := attributes(&entity.Entity{StringAttributes: texts, NumericAttributes: numbers}); text != "" {
		list = append(list, text)
	}
	for _, name := range append(goneTexts, goneNumbers...) {
		list = append(list, "no "+name)
	}
	if string(before.Content) != string(after.Content) {
		list = append(list, fmt.Sprintf("payload of %d bytes", len(after.Content)))
	}
	if before.ContentType != after.ContentType {
		list = append(list, fmt.Sprintf("content type %q", after.ContentType))
	}
	return strings.Join(list, ", ")
}

// differing returns the attributes that are new or have another value, and the
// names that were removed.
func differing[V comparable](before, after map[string]V) (news map[string]V, gone []string) {
	news = map[string]V{}
	for name, value := range after {
		if old, ok := before[name]; !ok || old != value {
			news[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			gone = append(gone, name)
		}
	}
	return news, gone
}

// historyCmd prints the versions of an entity.
type historyCmd struct {
	URL  string `arg:"" store:"" help:"Store to read."`
	Key  string `arg:"" help:"Key of the entity, 0x and 64 hex digits."`
	JSON bool   `help:"Print one JSON object a line."`
}

// eventJSON is a change of an entity in JSON output.
type eventJSON struct {
	Block    uint64      `json:"block"`
	Happened []string    `json:"happened"`
	Entity   *entityJSON `json:"entity,omitempty"` // the version that began
}

// Run prints the history.
func (c *historyCmd) Run(e *env) error {
	key, err := entity.ParseKey(c.Key)
	if err != nil {
		return usageError{err}
	}
	return e.withSnapshot(c.URL, store.Head, func(snap *store.Snapshot) error {
		p := &historyPrinter{head: snap.Number(), enc: json.NewEncoder(e.stdout)}
		if !c.JSON {
			p.table = newTable(e.stdout, "BLOCK", "WHAT", "OWNER", "EXPIRES", "BYTES", "CHANGED")
		}
		// The changes of a version are only known after the version before it
		// has been read.
		var later *entity.Version
		for v, err := range snap.Versions(e.ctx, key) {
			if err == nil {
				err = p.between(&v, later)
			}
			if err != nil {
				return err
			}
			later = &v
		}
		if err := p.between(nil, later); err != nil || c.JSON {
			return err
		}
		return p.table.w.Flush()
	})
}

// historyPrinter prints changes as JSON, or as a table unless that is nil.
type historyPrinter struct {
	head  uint64
	enc   *json.Encoder
	table *rowTable
}

// between prints the change between a version and the next one. Either may be
// nil: v if earlier versions are not kept, later if there is none.
func (p *historyPrinter) between(v, later *entity.Version) error {
	replaced := v != nil && later != nil && v.End == later.Entity.LastModifiedAtBlock && v.End < v.Entity.Expiration
	var count tally
	if later != nil {
		c := entity.Change{New: later.Entity}
		if replaced {
			c.Old = v.Entity
		}
		names := count.add(c.Kinds()...)
		if v == nil && later.Entity.CreatedAtBlock() != later.Entity.LastModifiedAtBlock {
			names = []string{"oldest kept"}
		}
		if err := p.print(later.Entity.LastModifiedAtBlock, names, &c); err != nil {
			return err
		}
	}
	switch {
	case v == nil || replaced || v.End > p.head:
		return nil
	case v.End < v.Entity.Expiration:
		return p.print(v.End, count.add(entity.Delete), &entity.Change{})
	}
	return p.print(v.End, count.add(entity.Expire), &entity.Change{})
}

func (p *historyPrinter) print(block uint64, names []string, c *entity.Change) error {
	if p.table == nil {
		return p.enc.Encode(eventJSON{Block: block, Happened: names, Entity: jsonOf(c.New)})
	}
	what := strings.Join(names, ", ")
	if c.New == nil {
		return p.table.row(block, what, "", "", "", "")
	}
	return p.table.row(block, what, c.New.Owner, expiration(c.New.Expiration), len(c.New.Content), changed(c.Old, c.New))
}

// blockDiffCmd prints the entities that differ between two blocks.
type blockDiffCmd struct {
	URL  string `arg:"" store:"" help:"Store to read."`
	From uint64 `arg:"" any:"" name:"a" help:"The earlier block."`
	To   uint64 `arg:"" any:"" name:"b" help:"The later block."`
	JSON bool   `help:"Print one JSON object a line, with both versions."`
}

// differenceJSON is a differing entity in JSON output.
type differenceJSON struct {
	Key      string      `json:"key"`
	Happened []string    `json:"happened"`
	Block    uint64      `json:"block"` // of the last change
	Before   *entityJSON `json:"before,omitempty"`
	After    *entityJSON `json:"after,omitempty"`
}

// Run prints the differences.
func (c *blockDiffCmd) Run(e *env) error {
	if c.From > c.To {
		return usageError{fmt.Errorf("block %d is above block %d; give the earlier one first", c.From, c.To)}
	}
	return e.withSnapshot(c.URL, store.Head, func(snap *store.Snapshot) error {
		var t *rowTable
		var count tally
		enc := json.NewEncoder(e.stdout)
		if !c.JSON {
			t = newTable(e.stdout, "WHAT", "KEY", "BLOCK", "OWNER", "EXPIRES", "BYTES", "CHANGED")
		}
		for d, err := range snap.Diff(e.ctx, c.From, c.To) {
			if err != nil {
				return err
			}
			kinds := d.Kinds()
			if d.Expired {
				kinds = []entity.Kind{entity.Expire}
			}
			names := count.add(kinds...)
			if c.JSON {
				err = enc.Encode(differenceJSON{
					Key: d.Key.String(), Happened: names, Block: d.Block,
					Before: jsonOf(d.Old), After: jsonOf(d.New),
				})
			} else {
				shown, what := d.Old, ""
				if d.New != nil {
					shown, what = d.New, changed(d.Old, d.New)
				}
				err = t.row(strings.Join(names, ", "), d.Key, d.Block, shown.Owner, expiration(shown.Expiration), len(shown.Content), what)
			}
			if err != nil {
				return err
			}
		}
		if c.JSON {
			return nil
		}
		err := t.w.Flush()
		fmt.Fprintf(e.stdout, "from block %d to %d: %s\n", c.From, c.To, &count)
		return err
	})
}

// logCmd prints the blocks.
type logCmd struct {
	URL   string  `arg:"" store:"" help:"Store to read."`
	From  *uint64 `any:"" help:"The lowest block; the oldest whose changes are kept when not given."`
	To    *uint64 `any:"" help:"The highest block; the head when not given."`
	Limit int     `min:"0" max:"1000000000000" help:"Most blocks to print; 0 for all." default:"20"`
	JSON  bool    `help:"Print one JSON object a line."`
}

// blockJSON is a block in JSON output.
type blockJSON struct {
	store.BlockHeader
	tally
}

// Run prints the blocks.
func (c *logCmd) Run(e *env) error {
	from, to := uint64(0), uint64(store.Head)
	if c.From != nil {
		from = *c.From
	}
	if c.To != nil {
		to = *c.To
	}
	if from > to {
		return usageError{fmt.Errorf("--from %d is above --to %d", from, to)}
	}
	return e.withSnapshot(c.URL, to, func(snap *store.Snapshot) error {
		// A block's changes are computed from the states before it and at it,
		// so those of the oldest readable block are not known.
		if oldest := snap.Horizon(); oldest > 0 {
			if c.From != nil && from <= oldest {
				return fmt.Errorf("block %d: %w: the changes of block %d and of earlier ones were pruned", from, store.ErrBlockRange, oldest)
			}
			from = max(from, oldest+1)
		}
		var t *rowTable
		enc := json.NewEncoder(e.stdout)
		if !c.JSON {
			t = newTable(e.stdout, "BLOCK", "TIME", "CREATED", "UPDATED", "EXTENDED", "OWNER CHANGED", "DELETED", "EXPIRED")
		}
		n := 0
		for h := snap.Header(); !h.Empty && h.Number >= from && (c.Limit == 0 || n < c.Limit); n++ {
			b, err := tallied(e, snap, h)
			switch {
			case err != nil:
				return err
			case c.JSON:
				err = enc.Encode(b)
			default:
				err = t.row(h.Number, blockTime(h.Time), b.Created, b.Updated, b.Extended, b.OwnerChanged, b.Deleted, b.Expired)
			}
			if err == nil && h.Number > 0 {
				h, err = snap.HeaderAt(e.ctx, h.Number-1)
			} else {
				h.Empty = true
			}
			if err != nil {
				return err
			}
		}
		if c.JSON {
			return nil
		}
		err := t.w.Flush()
		fmt.Fprintf(e.stdout, "%d blocks; the head is %d\n", n, snap.Head().Number)
		if oldest := snap.Horizon(); oldest > 0 {
			fmt.Fprintf(e.stdout, "the changes of block %d and of earlier ones were pruned\n", oldest)
		}
		return err
	})
}

// tallied counts the changes of a block.
func tallied(e *env, snap *store.Snapshot, h store.BlockHeader) (blockJSON, error) {
	b := blockJSON{BlockHeader: h}
	for set, err := range snap.Changes(e.ctx, h.Number, h.Number) {
		if err != nil {
			return b, err
		}
		for i := range set.Changed {
			b.add(set.Changed[i].Kinds()...)
		}
		b.Expired += len(set.Expired)
	}
	return b, nil
}

// blockTime formats the time of a block, if it is known.
func blockTime(seconds uint64) string {
	if seconds == 0 {
		return "-"
	}
	return time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339)
}
