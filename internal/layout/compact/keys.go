package compact

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
	"sync"

	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/driver"
)

// The table entity_keys is clustered by the hashes of keys, so keys that are
// created together go to leaves all over it. Writing each batch's keys there
// logged a leaf for nearly each key: two thirds of all bytes when small entities
// were created in a store of 600,000. So keys wait in recent runs, which are held
// in memory, until a sweep comes by: it goes through the hashes in their order, as
// a clock's hand, and moves what lies before it. It takes as many creations for a
// turn as may wait, so it writes each leaf once for all keys that came within a
// turn. A run is dropped when the sweep has passed each of its keys.

// keyEntry is a key's hash with the entity that was made under it.
type keyEntry struct{ hash, id int64 }

func compareKeys(a, b keyEntry) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.id, b.id))
}

// keyRun is keys that wait. Their rows are in the table of postings, in a run that
// no tree has.
type keyRun struct {
	no    int64
	count int64
	sum   uint64 // of its entries, by which it is found in memory
	at    uint64 // where the sweep was when the run was written
}

// recentKeys is the keys that wait, as the progress has them. Where the sweep is
// and where it is to go are in fractions of a turn, keyTurn of them, and grow.
type recentKeys struct {
	swept, due uint64
	runs       []keyRun // oldest first
}

const (
	keyTurn = 1 << 32
	keyStep = 1 << 32 // hashes that the sweep passes with each fraction
)

// place returns where a hash lies between the lowest and the highest.
func place(hash int64) uint64 { return uint64(hash) ^ 1<<63 }

// behind reports whether the sweep has to go on.
func (k *recentKeys) behind() bool { return k.swept < k.due }

// encode appends the stored form.
func (k *recentKeys) encode(buf []byte) []byte {
	buf = binary.AppendUvarint(buf, k.swept)
	buf = binary.AppendUvarint(buf, k.due-k.swept)
	buf = binary.AppendUvarint(buf, uint64(len(k.runs)))
	for _, r := range k.runs {
		for _, n := range []uint64{uint64(r.no), uint64(r.count), k.swept - r.at} {
			buf = binary.AppendUvarint(buf, n)
		}
		buf = binary.BigEndian.AppendUint64(buf, r.sum)
	}
	return buf
}

// decodeKeys is the inverse of encode. Stores from before there were recent keys
// have no bytes here.
func decodeKeys(stored []byte) (k recentKeys, err error) {
	if len(stored) == 0 {
		return k, nil
	}
	r := packed.Reader{Rest: stored}
	k.swept = r.Uint()
	k.due = k.swept + r.Uint()
	for n := r.Count(); n > 0 && !r.Torn; n-- {
		run := keyRun{no: int64(r.Uint()), count: int64(r.Uint()), at: k.swept - r.Uint()}
		if sum := r.Bytes(8); !r.Torn {
			run.sum = binary.BigEndian.Uint64(sum)
		}
		k.runs = append(k.runs, run)
	}
	if r.Torn || len(r.Rest) > 0 {
		return k, fmt.Errorf("%w: the list of recent keys is torn", driver.ErrCorrupt)
	}
	return k, nil
}

// keyList is the entries of a run, sorted by hash. It never changes.
type keyList struct {
	entries []keyEntry
	ends    []int32 // of parts of the hashes, of the same width: how many are below each end
}

// newKeyList has one part for about four entries, because a look-up goes to each
// of some ten lists: from end to end it would take a quarter of a get's time.
func newKeyList(sorted []keyEntry) *keyList {
	l := &keyList{entries: sorted, ends: make([]int32, 1<<bits.Len(uint(len(sorted)/4)))}
	for i := range sorted {
		l.ends[l.part(sorted[i].hash)] = int32(i + 1)
	}
	for i := 1; i < len(l.ends); i++ {
		l.ends[i] = max(l.ends[i], l.ends[i-1])
	}
	return l
}

func (l *keyList) part(hash int64) uint64 {
	return place(hash) >> (64 - bits.Len(uint(len(l.ends)-1)))
}

// from returns the first entry of a hash or of a greater one.
func (l *keyList) from(hash int64) int {
	part, lo := l.part(hash), 0
	if part > 0 {
		lo = int(l.ends[part-1])
	}
	return lo + sort.Search(int(l.ends[part])-lo, func(i int) bool { return l.entries[lo+i].hash >= hash })
}

// keyLists are the lists of runs.
type keyLists []*keyList

// ids returns the entities that were made under keys with some hashes.
func (l keyLists) ids(hashes []any) (ids []any) {
	for _, h := range hashes {
		hash := h.(int64)
		for _, list := range l {
			for i := list.from(hash); i < len(list.entries) && list.entries[i].hash == hash; i++ {
				ids = append(ids, list.entries[i].id)
			}
		}
	}
	return ids
}

// keyCache has the entries of the runs that were read or written last. They are
// found by a hash over them, so what a transaction wrote that was rolled back is
// never taken for what another wrote under the same number.
type keyCache struct {
	mu    sync.Mutex
	runs  []keyRun
	lists keyLists
}

// find returns the lists of runs that are in memory, and nil for the others.
func (c *keyCache) find(runs []keyRun) (lists keyLists, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(runs, c.runs) {
		return c.lists, true
	}
	lists, all = make(keyLists, len(runs)), true
	for i, r := range runs {
		at := slices.IndexFunc(c.runs, func(has keyRun) bool { return has.sum == r.sum && has.count == r.count })
		if at < 0 {
			all = false
			continue
		}
		lists[i] = c.lists[at]
	}
	return lists, all
}

func (c *keyCache) keep(runs []keyRun, lists keyLists) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs, c.lists = runs, lists
}

// newest returns the lists that were read or written last, which the next view
// probably finds.
func (c *keyCache) newest() keyLists {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists
}

// recentKeys returns the entries of all runs of keys: from memory, or read.
func (l *Layout) recentKeys(ctx context.Context, q driver.Querier, k *recentKeys) (keyLists, error) {
	lists, all := l.keys.find(k.runs)
	for i := range lists {
		if lists[i] != nil {
			continue
		}
		var err error
		if lists[i], err = l.readKeys(ctx, q, &k.runs[i]); err != nil {
			return nil, err
		}
	}
	if !all {
		l.keys.keep(k.runs, lists)
	}
	return lists, nil
}

// readKeys reads the entries of a run.
func (l *Layout) readKeys(ctx context.Context, q driver.Querier, run *keyRun) (*keyList, error) {
	var list []keyEntry
	torn := false
	err := l.sql.Each(ctx, q, "run_pages", []any{run.no, []byte{}, int64(math.MaxInt32)}, func(rows driver.Rows) error {
		var low, body []byte
		if err := rows.Scan(&low, &body); err != nil {
			return err
		}
		for r := (packed.Reader{Rest: body}); len(r.Rest) > 0 || r.Torn; {
			hash, id := r.Bytes(8), r.Uint()
			if torn = torn || r.Torn; torn {
				break
			}
			list = append(list, keyEntry{int64(binary.BigEndian.Uint64(hash)), int64(id)})
		}
		return nil
	})
	if err == nil && (torn || int64(len(list)) != run.count || sumOfKeys(list) != run.sum) {
		err = fmt.Errorf("%w: run %d of keys does not have its checksum; varve check --repair makes the keys again", driver.ErrCorrupt, run.no)
	}
	if err != nil {
		return nil, err
	}
	return newKeyList(list), nil
}

func sumOfKeys(list []keyEntry) uint64 {
	h := sha256.New()
	buf := make([]byte, 0, 16)
	for _, e := range list {
		buf = binary.BigEndian.AppendUint64(buf[:0], uint64(e.hash))
		h.Write(binary.BigEndian.AppendUint64(buf, uint64(e.id)))
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// writeKeys writes a run of entries and returns it.
func (l *Layout) writeKeys(ctx context.Context, tx driver.Tx, p *progress, list []keyEntry) (keyRun, error) {
	run := keyRun{no: p.tree.Number(), count: int64(len(list)), sum: sumOfKeys(list), at: p.keys.swept}
	var pages []lsm.Page
	for some := range slices.Chunk(list, max(l.opts.Page/keyBytes, 1)) {
		page := lsm.Page{Low: binary.BigEndian.AppendUint64(nil, place(some[0].hash))}
		// Entries of one hash may begin two pages.
		page.Low = binary.BigEndian.AppendUint64(page.Low, uint64(some[0].id))
		for _, e := range some {
			page.Body = binary.BigEndian.AppendUint64(page.Body, uint64(e.hash))
			page.Body = binary.AppendUvarint(page.Body, uint64(e.id))
		}
		pages = append(pages, page)
	}
	return run, l.postings.Insert(ctx, tx, run.no, pages)
}

// addKeys puts the keys of a batch into a run. It takes newer runs in that are no
// larger, so that there are few of them, as far as a part of what may wait.
func (v *view) addKeys(ctx context.Context, tx driver.Tx, added []keyEntry) error {
	if len(added) == 0 {
		return nil
	}
	lists, err := v.l.recentKeys(ctx, tx, &v.p.keys)
	if err != nil {
		return err
	}
	k, limit := &v.p.keys, v.l.opts.recentKeys()
	n, list := len(k.runs), slices.Clone(added)
	for ; n > 0 && len(lists[n-1].entries) <= len(list) && (len(list)+len(lists[n-1].entries))*keyRuns <= limit; n-- {
		list = append(list, lists[n-1].entries...)
		if err := v.l.sql.Exec(ctx, tx, "drop_run", k.runs[n-1].no, []byte{}); err != nil {
			return err
		}
	}
	slices.SortFunc(list, compareKeys)
	run, err := v.l.writeKeys(ctx, tx, &v.p, list)
	if err != nil {
		return err
	}
	k.runs, lists, v.keys = append(k.runs[:n:n], run), append(lists[:n:n], newKeyList(list)), nil
	v.l.keys.keep(k.runs, lists)

	// A turn takes so many creations as keys may wait, and in small stores less, so
	// that most of the keys are in the table.
	turn := max(min(int64(limit), v.p.nextID/2), 1)
	k.due = min(k.due+uint64(len(added))*keyTurn/uint64(turn), k.swept+keyTurn)
	return nil
}

// sweepKeys moves some of the keys that wait into the table, and drops the runs
// that the sweep has passed. Some of the keys may be there: those of runs that
// others took in.
func (v *view) sweepKeys(ctx context.Context, tx driver.Tx) error {
	lists, err := v.l.recentKeys(ctx, tx, &v.p.keys)
	if err != nil {
		return err
	}
	k, waiting := &v.p.keys, uint64(1)
	for _, list := range lists {
		waiting += uint64(len(list.entries))
	}
	from := k.swept % keyTurn
	width := min(k.due-k.swept, keyTurn-from, uint64(v.l.opts.Steps)*keyTurn/waiting+1)

	// Collect what lies before the sweep, from each run.
	var moved []keyEntry
	lowest := int64(from*keyStep ^ 1<<63)
	for _, list := range lists {
		for i := list.from(lowest); i < len(list.entries) && place(list.entries[i].hash)/keyStep < from+width; i++ {
			moved = append(moved, list.entries[i])
		}
	}
	slices.SortFunc(moved, compareKeys)
	rows := make([]any, 0, 2*len(moved))
	for _, e := range moved {
		rows = append(rows, e.hash, e.id)
	}
	if err := v.l.sql.ExecIn(ctx, tx, "insert_missing_keys", 2, rows); err != nil {
		return err
	}
	k.swept += width

	var kept []keyRun
	var keptLists keyLists
	for i, r := range k.runs {
		if k.swept-r.at < keyTurn {
			kept, keptLists = append(kept, r), append(keptLists, lists[i])
		} else if err := v.l.sql.Exec(ctx, tx, "drop_run", r.no, []byte{}); err != nil {
			return err
		}
	}
	k.runs, v.keys = kept, nil
	v.l.keys.keep(kept, keptLists)
	return nil
}

// findWaiting finds the entities whose keys wait.
func (r *rework) findWaiting(ctx context.Context) error {
	lists, err := r.l.recentKeys(ctx, r.tx, &r.p.keys)
	for _, list := range lists {
		for _, e := range list.entries {
			r.waiting.Add(e.id)
		}
	}
	return err
}

// dropKeys takes entities of which nothing is left out of the keys that wait.
func (r *rework) dropKeys(ctx context.Context) error {
	if len(r.gone) == 0 {
		return nil
	}
	lists, err := r.l.recentKeys(ctx, r.tx, &r.p.keys)
	if err != nil {
		return err
	}
	k := &r.p.keys
	k.runs, lists = slices.Clone(k.runs), slices.Clone(lists)
	for i, was := range k.runs {
		list := slices.DeleteFunc(slices.Clone(lists[i].entries), func(e keyEntry) bool { return r.gone.Has(e.id) })
		if len(list) == len(lists[i].entries) {
			continue
		}
		if err := r.l.sql.Exec(ctx, r.tx, "drop_run", was.no, []byte{}); err != nil {
			return err
		}
		if k.runs[i], err = r.l.writeKeys(ctx, r.tx, r.p, list); err != nil {
			return err
		}
		lists[i], k.runs[i].at = newKeyList(list), was.at
	}
	r.l.keys.keep(k.runs, lists)
	return nil
}

// recentIDs returns the entities that keys that wait lead to, by hashes.
func (v *view) recentIDs(ctx context.Context, hashes []any) (ids []any, err error) {
	// A view keeps them, because what is in memory is of the newest views.
	if v.keys == nil {
		if v.keys, err = v.l.recentKeys(ctx, v.q, &v.p.keys); err != nil {
			return nil, err
		}
	}
	return v.keys.ids(hashes), nil
}

// versionsOfKeys calls f with the versions, current or closed ones, that keys with
// hashes lead to, some of them more than once.
func (v *view) versionsOfKeys(ctx context.Context, current bool, hashes []any, f func(*version) error) error {
	i := 1
	if current {
		i = 0
	}
	ids, err := v.recentIDs(ctx, hashes)
	if err == nil {
		err = v.l.versionsIn(ctx, v.q, versionsByKey[i], hashes, nil, f)
	}
	if err == nil {
		err = v.l.versionsIn(ctx, v.q, versionsByID[i], ids, nil, f)
	}
	return err
}

// entitiesOf returns the entities of the tables that were made under keys, or under
// others with their hashes, each once and in order.
func (v *view) entitiesOf(ctx context.Context, hashes []any) (ids []int64, err error) {
	waiting, err := v.recentIDs(ctx, hashes)
	if err != nil {
		return nil, err
	}
	for _, id := range waiting {
		ids = append(ids, id.(int64))
	}
	err = v.l.sql.EachIn(ctx, v.q, "ids_by_key", hashes, nil, func(rows driver.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	})
	slices.Sort(ids)
	return slices.Compact(ids), err
}
