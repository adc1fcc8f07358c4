package service

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// TestCacheForgets: a reader that has read the store before everything was
// forgotten, or before a key was written, does not put back what it has read.
func TestCacheForgets(t *testing.T) {
	c, err := newCache(1<<20, newMetrics())
	require.NoError(t, err)
	defer c.close()
	e := &entity.Entity{Key: entity.Key{1}}
	for name, changes := range map[string]func(){
		"forgotten": c.forget,
		"deleted":   func() { c.publish(e.Key, nil) },
	} {
		c.offer(e, c.epoch(e.Key))
		_, ok := c.peek(e.Key)
		require.True(t, ok)
		before := c.epoch(e.Key)
		changes()
		c.offer(e, before)
		_, ok = c.peek(e.Key)
		require.False(t, ok, name)
	}
}
