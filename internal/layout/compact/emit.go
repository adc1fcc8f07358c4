package compact

import (
	"context"
	"errors"

	"github.com/varvedb/varve/store/entity"
)

// output turns versions into entities and hands them out, with their payloads
// if they are asked for, several at a time.
type output struct {
	v          *view
	attributes bool // attributes are asked for
	content    bool // payloads are
	yield      func(*entity.Entity, error) bool
	waiting    []*version
	bytes      uint64 // of payloads that are waited for
	stopped    bool
}

// outputBytes bounds the payloads that are read at once.
const outputBytes = 1 << 20

// add hands a version out, now or a little later. It returns errStopped when nobody wants more.
func (o *output) add(ctx context.Context, r *version, rec *record) error {
	o.waiting = append(o.waiting, r)
	if o.content {
		if o.bytes += rec.size; o.bytes < outputBytes && len(o.waiting) < 2*few {
			return nil
		}
	}
	return o.flush(ctx)
}

// flush hands out what waits.
func (o *output) flush(ctx context.Context) (err error) {
	list := o.waiting
	o.waiting, o.bytes = nil, 0
	if len(list) == 0 {
		return nil
	}
	var contents map[int64][]byte
	if o.content {
		if contents, err = o.v.contents(ctx, list); err != nil {
			return err
		}
	}
	dictionary := o.v.names.list()
	for _, r := range list {
		e, err := r.entity(dictionary, o.attributes)
		if err != nil {
			return err
		}
		e.Content = contents[r.content]
		if err := o.hand(e); err != nil {
			return err
		}
	}
	return nil
}

func (o *output) hand(e *entity.Entity) error {
	o.stopped = !o.yield(e, nil)
	return stoppedIf(o.stopped)
}

// end hands out what waits, or an error. That more was not wanted is none.
func (o *output) end(ctx context.Context, err error) {
	if errors.Is(err, errStopped) {
		err = nil
	}
	if err == nil && !o.stopped {
		err = o.flush(ctx)
	}
	if err != nil && !o.stopped {
		o.yield(nil, err)
	}
}
