package compact

import (
	"slices"
	"sync"
)

// overlay is what the log says about entities at a block: of those it touches,
// it alone counts.
type overlay struct {
	merged, at int64
	versions   map[int64]*version // by id; nil when the entity has ended
	live       []*version         // those that have not, highest id first
}

// newOverlay folds the nodes above merged and up to at.
func newOverlay(nodes []*node, merged, at int64) *overlay {
	o := &overlay{merged: merged, at: at, versions: map[int64]*version{}}
	for _, n := range nodes {
		if n.block <= merged || n.block > at {
			continue
		}
		for i := range n.changes {
			c := &n.changes[i]
			if c.oldID != 0 {
				o.versions[c.oldID] = nil
			}
			if c.newID != 0 {
				o.versions[c.newID] = &c.next
			}
		}
	}
	for _, v := range o.versions {
		if v != nil {
			o.live = append(o.live, v)
		}
	}
	slices.SortFunc(o.live, func(a, b *version) int {
		if a.id > b.id {
			return -1
		}
		return 1
	})
	return o
}

// touches tells whether an entity is the overlay's.
func (o *overlay) touches(id int64) bool {
	_, ok := o.versions[id]
	return ok
}

// overlayCache keeps the last overlay of a chain at its head.
type overlayCache struct {
	mu   sync.Mutex
	last *overlay
}

// overlay returns what the chain says at a block, over the tables of a view.
func (c *chain) overlay(p *progress, at int64) *overlay {
	at = min(at, p.last)
	if at < p.last {
		return newOverlay(c.nodes, p.merged, at)
	}
	c.overlays.mu.Lock()
	defer c.overlays.mu.Unlock()
	if o := c.overlays.last; o != nil && o.merged == p.merged {
		return o
	}
	c.overlays.last = newOverlay(c.nodes, p.merged, at)
	return c.overlays.last
}
