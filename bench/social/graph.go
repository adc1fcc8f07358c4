package social

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/varvedb/varve/bench/graph"
	"github.com/varvedb/varve/internal/splitmix"
)

// The limits of the number of relationships.
const (
	MinRelationships = 5_000
	MaxRelationships = 2_000_000_000
)

// The proportions of AuthZed's table: of a million relationships, 5,208 are
// users' visibilities, as many are self, ten times as many are followers, and
// so on. They add up to perUser.
const (
	followersPerUser    = 10
	contentPerUser      = 70
	interactionsPerUser = 20
	perUser             = 2 + followersPerUser + 2*contentPerUser + 2*interactionsPerUser

	publicUsers   = 0.5
	publicContent = 180_988_918.0 / (180_988_918 + 183_594_125)
)

// Graph is a set of relationships. The same number and seed give the same
// graph.
type Graph struct {
	relationships int
	seed          uint64
	count         [kinds]int

	followers [][]Object // of each user, in order
	published []int      // running sums of content over users by rank
	reacted   []int      // running sums of interactions over users by rank
	user      []uint32   // numbers of users by rank
	orders    [purposes]permutation
}

// The purposes of random numbers.
const (
	forRank = iota + 1
	forContent
	forVisible
	forOpen
	forCreator
	forParent
	forPopularity
	forFollowers
	purposes
)

// ordered are the kinds of objects that are randomly ordered for a purpose.
var ordered = map[int]Kind{
	forRank: User, forVisible: User, forContent: Content, forOpen: Content, forParent: Content, forCreator: Interaction,
}

// New prepares a graph. Only users and their followers, a sixteenth of the
// relationships, are kept in memory.
func New(relationships int, seed uint64) (*Graph, error) {
	if relationships < MinRelationships || relationships > MaxRelationships {
		return nil, fmt.Errorf("social graph of %d relationships: give a number from %d to %d", relationships, MinRelationships, MaxRelationships)
	}
	users := relationships / perUser
	rest := relationships % perUser
	content, interactions := contentPerUser*users+rest/2, interactionsPerUser*users
	g := &Graph{relationships: relationships, seed: seed, count: [kinds]int{User: users, Content: content, Interaction: interactions}}
	followers, err := graph.Divide(followersPerUser*users+rest%2, users, 0, activity(users), graph.UpTo((users-1)/2))
	published, err2 := graph.Divide(content, users, 0, activity(users), graph.UpTo(content))
	reacted, err3 := graph.Divide(interactions, users, 0, activity(users), graph.UpTo(interactions))
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, fmt.Errorf("social graph: %w", err)
	}
	g.published, g.reacted = sums(published), sums(reacted)
	for purpose, k := range ordered {
		g.orders[purpose] = newPermutation(g.count[k], seed, uint64(purpose))
	}
	g.user, g.followers = make([]uint32, users), make([][]Object, users)
	for i := range users {
		rank := g.at(forRank, i)
		g.user[rank], g.followers[i] = uint32(i+1), g.follow(i, followers[rank])
	}
	return g, nil
}

// at returns the position of i in the order for a purpose.
func (g *Graph) at(purpose, i int) int { return g.orders[purpose].at(i) }

// sums replaces numbers by their running sums.
func sums(list []int) []int {
	for i := 1; i < len(list); i++ {
		list[i] += list[i-1]
	}
	return list
}

// Len returns the number of relationships.
func (g *Graph) Len() int { return g.relationships }

// Relationships yields the relationships ordered by object, relation and
// subject.
func (g *Graph) Relationships() iter.Seq[Relationship] {
	return func(yield func(Relationship) bool) {
		for k, count := range g.count {
			for i := range count {
				o := NewObject(Kind(k), i+1)
				if two := g.twoRelationships(o); !yield(two[0]) || !yield(two[1]) {
					return
				}
				if o.Kind() != User {
					continue
				}
				for _, s := range g.followers[i] {
					if !yield(Relationship{o, Follower, s}) {
						return
					}
				}
			}
		}
	}
}

// twoRelationships returns the two relationships of an object other than
// followers.
func (g *Graph) twoRelationships(o Object) [2]Relationship {
	i := o.Number() - 1
	switch o.Kind() {
	case User:
		visibility := Relationship{o, UserFollowers, o}
		if g.at(forVisible, i) < int(publicUsers*float64(g.count[User])) {
			visibility = Relationship{o, UserPublic, Everybody}
		}
		return [2]Relationship{visibility, {o, Self, o}}
	case Content:
		owner := g.byActivity(g.published, g.at(forContent, i))
		visibility := Relationship{o, ContentFollowers, owner}
		if g.at(forOpen, i) < int(publicContent*float64(g.count[Content])+0.5) {
			visibility = Relationship{o, ContentPublic, Everybody}
		}
		return [2]Relationship{{o, Owner, owner}, visibility}
	}
	popular := int(inverseShare(unit(g.seed, forPopularity, i)) * float64(g.count[Content]))
	parent := NewObject(Content, g.at(forParent, min(popular, g.count[Content]-1))+1)
	return [2]Relationship{{o, Creator, g.byActivity(g.reacted, g.at(forCreator, i))}, {o, Parent, parent}}
}

// follow returns n users other than user i (from 0), in order.
func (g *Graph) follow(i, n int) []Object {
	r := rand.New(rand.NewPCG(g.seed, splitmix.Scramble(forFollowers^splitmix.Scramble(uint64(i)))))
	seen := make(map[int]bool, n)
	list := make([]Object, 0, n)
	for len(list) < n {
		if other := r.IntN(g.count[User]); other != i && !seen[other] {
			seen[other] = true
			list = append(list, NewObject(User, other+1))
		}
	}
	slices.Sort(list)
	return list
}

// byActivity returns the user into whose share of the sums a position falls.
func (g *Graph) byActivity(sums []int, position int) Object {
	rank := sort.SearchInts(sums, position+1)
	return NewObject(User, int(g.user[rank]))
}

// Activity follows a Pareto distribution of index 1 (Lomax's form): the
// activity of the user at fraction x of all users, the most active first, is
// proportional to 1/(1+steepness·x). With this steepness a fifth of the users
// have four fifths of the activity, and the first of very many users has 386
// times the mean.
const steepness = 3104

// share returns the share of all activity that the most active fraction x (0…1)
// of users has.
func share(x float64) float64 { return math.Log1p(steepness*x) / math.Log1p(steepness) }

// activity returns a function that gives the activity of each of n users, by
// rank.
func activity(n int) func(i int) float64 {
	return func(i int) float64 { return share(float64(i+1)/float64(n)) - share(float64(i)/float64(n)) }
}

// inverseShare is the inverse of share: the fraction of users that have a share of the
// activity.
func inverseShare(share float64) float64 { return math.Expm1(share*math.Log1p(steepness)) / steepness }

// permutation is a pseudo-random order of 0…n-1 that needs no memory: a Feistel
// network over the next power of four, repeated until the result is below n.
type permutation struct {
	n, half uint64
	mask    uint64
	keys    [rounds]uint64
}

const rounds = 4

func newPermutation(n int, seed, purpose uint64) permutation {
	p := permutation{n: uint64(n), half: 1}
	for 1<<(2*p.half) < p.n {
		p.half++
	}
	p.mask = 1<<p.half - 1
	for i := range p.keys {
		p.keys[i] = splitmix.Scramble(seed ^ splitmix.Scramble(purpose<<8|uint64(i)))
	}
	return p
}

// at returns the position of i (0…n-1).
func (p *permutation) at(i int) int {
	x := uint64(i)
	for {
		left, right := x>>p.half, x&p.mask
		for _, key := range p.keys {
			left, right = right, left^splitmix.Scramble(right^key)&p.mask
		}
		if x = left<<p.half | right; x < p.n {
			return int(x)
		}
	}
}

// unit returns a number in 0…1 for draw i of a purpose.
func unit(seed, purpose uint64, i int) float64 {
	return float64(splitmix.Scramble(seed^splitmix.Scramble(purpose^splitmix.Scramble(uint64(i))))>>11) / (1 << 53)
}
