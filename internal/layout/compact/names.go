package compact

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"github.com/varvedb/varve/store/driver"
)

// nameKind is what a name is of.
type nameKind int64

const (
	stringName nameKind = iota + 1
	numberName
	contentType
)

// firstName is the lowest number of a name: attributes below are our own.
const firstName = 16

// maxNames bounds the dictionary, which is held in memory: names beyond it are spelled out in each version.
var maxNames int64 = 1 << 16

type name struct {
	kind nameKind
	text string
}

// names is the dictionary of attribute names and content types. Numbers are given out in order from firstName. What
// is committed is shared by all views; a write transaction adds to a fork.
type names struct {
	base *names // of a fork

	mu    sync.RWMutex
	byID  []name // from firstName on, those of base too; only ever appended to
	index map[name]int64
}

func newNames() *names { return &names{index: map[name]int64{}} }

// fork returns names that may be added to, without anybody else's knowing.
func (n *names) fork() *names {
	return &names{base: n, byID: slices.Clip(n.list()), index: map[name]int64{}}
}

// list returns the names so far, which do not change.
func (n *names) list() []name {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.byID
}

// id returns a name's number, or 0.
func (n *names) id(kind nameKind, text string) int64 {
	if n.base != nil {
		if id := n.base.id(kind, text); id != 0 {
			return id
		}
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.index[name{kind, text}]
}

// add gives a name a number, or 0 when the dictionary is full.
func (n *names) add(kind nameKind, text string) (id int64, added bool) {
	if id := n.id(kind, text); id > 0 || int64(len(n.byID)) >= maxNames {
		return id, false
	}
	id = n.highest() + 1
	n.put(id, name{kind, text})
	return id, true
}

func (n *names) highest() int64 { return firstName + int64(len(n.list())) - 1 }

// load reads the names above those it has, up to a number.
func (l *Layout) loadNames(ctx context.Context, q driver.Querier, n *names, upTo int64) error {
	if n.highest() >= upTo {
		return nil
	}
	err := l.sql.Each(ctx, q, "names", []any{n.highest()}, func(rows driver.Rows) error {
		var id, kind int64
		var spelled []byte
		if err := rows.Scan(&id, &kind, &spelled); err != nil {
			return err
		}
		n.put(id, name{nameKind(kind), string(spelled)})
		return nil
	})
	if err == nil && n.highest() < upTo {
		err = fmt.Errorf("%w: name %d is missing", driver.ErrCorrupt, n.highest()+1)
	}
	return err
}

// put adds a name, if it is the next: another reader may have been faster.
func (n *names) put(id int64, key name) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id == firstName+int64(len(n.byID)) {
		n.byID = append(n.byID, key)
		n.index[key] = id
	}
}

// spelledName stands for a name without a number in postings: 8 bytes of its
// hash. Two names may share them, so postings of such names are never exact.
func spelledName(kind nameKind, text string) []byte {
	sum := sha256.Sum256(append([]byte{byte(kind)}, text...))
	return sum[:8]
}
