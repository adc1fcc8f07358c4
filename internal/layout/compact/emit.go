package compact

import (
	"context"

	"github.com/varvedb/varve/store/entity"
)

// output makes entities of versions and yields them. With payloads it reads those
// of several versions at once.
type output struct {
	v          *view
	attributes bool // attributes are asked for
	content    bool // payloads are
	yield      func(*entity.Entity, error) bool
	waiting    []*version
	bytes      uint64 // of the payloads of these
}

// outputBytes bounds the payloads that are read at once.
const outputBytes = 1 << 20

// add yields a version, now or with later ones. It reports whether the caller
// wants more; an error is yielded and ends the output.
func (o *output) add(ctx context.Context, r *version, size uint64) bool {
	o.waiting = append(o.waiting, r)
	if o.bytes += size; o.content && o.bytes < outputBytes && len(o.waiting) < 2*lookupCost {
		return true
	}
	return o.flush(ctx)
}

// flush yields the versions that wait.
func (o *output) flush(ctx context.Context) bool {
	list := o.waiting
	o.waiting, o.bytes = nil, 0
	var contents map[int64][]byte
	if o.content && len(list) > 0 {
		var err error
		if contents, err = o.v.contents(ctx, list); err != nil {
			o.yield(nil, err)
			return false
		}
	}
	dictionary := o.v.names.list()
	for _, r := range list {
		e, err := r.entity(dictionary, o.attributes)
		if err != nil {
			o.yield(nil, err)
			return false
		}
		e.Content = contents[r.content]
		if !o.yield(e, nil) {
			return false
		}
	}
	return true
}
