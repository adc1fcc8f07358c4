package social

import (
	"math"
	"math/rand/v2"
)

// active draws the objects that take part in a load: one in stride of each kind.
type active struct {
	count  [kinds]int
	stride int
}

// newActive samples a part (above 0, at most 1) of the objects of a graph.
func newActive(g *Graph, part float64) active {
	return active{count: g.count, stride: max(int(math.Round(1/part)), 1)}
}

// size returns how many objects of a kind take part.
func (a active) size(k Kind) int { return (a.count[k] + a.stride - 1) / a.stride }

func (a active) pick(r *rand.Rand, k Kind) Object {
	return NewObject(k, r.IntN(a.size(k))*a.stride+1)
}

// other returns a user that takes part; a neighbour when it is the given one.
func (a active) other(r *rand.Rand, than Object) Object {
	if u := a.pick(r, User); u != than {
		return u
	}
	return NewObject(User, than.Number()%a.count[User]+1)
}
