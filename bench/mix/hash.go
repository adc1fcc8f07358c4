package mix

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store/entity"
)

// seed is that of hashes, which never leave the process.
var seed = maphash.MakeSeed()

func hashContent(content []byte) uint64 { return maphash.Bytes(seed, content) }

// hashKey is cheap: keys are hashes already, and those that collide are told
// apart by the keys themselves.
func hashKey(key entity.Key) uint64 { return binary.LittleEndian.Uint64(key[:]) }

// hashRest returns the hash of the attributes, in whatever order, and of the
// content type. Sums need no sorting, and what one wrong attribute adds is as
// good as random.
func hashRest(e *entity.Entity) uint64 {
	sum := splitmix.Scramble(maphash.String(seed, e.ContentType))
	for name, value := range e.StringAttributes {
		sum += splitmix.Scramble(maphash.String(seed, name) ^ splitmix.Scramble(maphash.String(seed, value)))
	}
	for name, value := range e.NumericAttributes {
		sum += splitmix.Scramble(maphash.String(seed, name) ^ splitmix.Scramble(value+1)<<1)
	}
	return sum
}
