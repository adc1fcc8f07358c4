package compact

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
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

// Attribute numbers below firstName are our own.
const (
	attrOwner      = 1
	attrCreator    = 2
	attrExpiration = 3
	attrModified   = 4
	attrUnnamed    = 5 // of attributes whose name has no number
	firstName      = 16
)

// maxNames bounds the dictionary, which is held in memory: names beyond it are
// spelled out in each version.
var maxNames int64 = 1 << 16

type name struct {
	kind nameKind
	text string
}

// names is the dictionary of attribute names and content types. Numbers are
// given out in order from firstName.
type names struct {
	mu    sync.RWMutex
	byID  []name // from firstName on; only ever appended to
	index map[name]int64
}

func newNames() *names { return &names{index: map[name]int64{}} }

// list returns the names so far, which do not change.
func (n *names) list() []name {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.byID
}

// id returns a name's number, or 0.
func (n *names) id(kind nameKind, text string) int64 {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.index[name{kind, text}]
}

// add gives a name a number, or 0 when the dictionary is full.
func (n *names) add(kind nameKind, text string) (id int64, added bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := name{kind, text}
	if id := n.index[key]; id > 0 || int64(len(n.byID)) >= maxNames {
		return id, false
	}
	n.byID = append(n.byID, key)
	id = firstName + int64(len(n.byID)) - 1
	n.index[key] = id
	return id, true
}

func (n *names) highest() int64 {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return firstName + int64(len(n.byID)) - 1
}

// load reads the names above those it has, up to a number.
func (n *names) load(ctx context.Context, q driver.Querier, text string, upTo int64) (err error) {
	if n.highest() >= upTo {
		return nil
	}
	rows, err := q.Query(ctx, text, n.highest())
	if err != nil {
		return fmt.Errorf("read names: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, kind int64
		var spelled []byte
		if err := rows.Scan(&id, &kind, &spelled); err != nil {
			return fmt.Errorf("read names: %w", err)
		}
		n.put(id, name{nameKind(kind), string(spelled)})
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read names: %w", err)
	}
	if n.highest() < upTo {
		return fmt.Errorf("%w: name %d is missing", driver.ErrCorrupt, n.highest()+1)
	}
	return nil
}

// put adds a name that was read, if it is the next: another reader may have
// been faster.
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
