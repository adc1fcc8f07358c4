package social

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/varvedb/varve/bench/graph"
	"github.com/varvedb/varve/internal/splitmix"
)

// How many relationships a graph can have.
const (
	MinRelationships = 5_000
	MaxRelationships = 2_000_000_000
)

// The numbers of AuthZed's table, a user: of a million relationships, 5,208 are
// users' visibilities, as many self, ten times as many followers, and so on. They
// add up to perUser.
const (
	followersPerUser    = 10
	contentPerUser      = 70
	interactionsPerUser = 20
	perUser             = 2 + followersPerUser + 2*contentPerUser + 2*interactionsPerUser

	publicUsers   = 0.5
	publicContent = 180_988_918.0 / (180_988_918 + 183_594_125)
)

// Graph is relationships: of the same number and seed the same ones each time.
type Graph struct {
	relationships int
	seed          uint64
	count         [kinds]int

	followers []int    // of users by rank
	published []int    // content of the users up to a rank, summed up
	reacted   []int    // interactions of the users up to a rank, summed up
	user      []uint32 // numbers of users by rank
	orders    [purposes]permutation
}

// What random numbers are for.
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

// ordered are the kinds of objects that have a random order for a purpose.
var ordered = map[int]Kind{
	forRank: User, forVisible: User, forContent: Content, forOpen: Content, forParent: Content, forCreator: Interaction,
}

// New prepares a graph. It takes memory for each user, one in 192
// relationships.
func New(relationships int, seed uint64) (*Graph, error) {
	if relationships < MinRelationships || relationships > MaxRelationships {
		return nil, fmt.Errorf("social graph of %d relationships: give a number from %d to %d", relationships, MinRelationships, MaxRelationships)
	}
	users := relationships / perUser
	rest := relationships % perUser
	content, interactions := contentPerUser*users+rest/2, interactionsPerUser*users
	g := &Graph{relationships: relationships, seed: seed, count: [kinds]int{User: users, Content: content, Interaction: interactions}}
	var errs [3]error
	g.followers, errs[0] = graph.Divide(followersPerUser*users+rest%2, users, 0, activity(users), graph.UpTo((users-1)/2))
	g.published, errs[1] = graph.Divide(content, users, 0, activity(users), graph.UpTo(content))
	g.reacted, errs[2] = graph.Divide(interactions, users, 0, activity(users), graph.UpTo(interactions))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("social graph: %w", err)
	}
	g.published, g.reacted = sums(g.published), sums(g.reacted)
	for purpose, k := range ordered {
		g.orders[purpose] = newPermutation(g.count[k], seed, uint64(purpose))
	}
	g.user = make([]uint32, users)
	for i := range g.user {
		g.user[g.at(forRank, i)] = uint32(i + 1)
	}
	return g, nil
}

// at returns where i is in the order of a purpose.
func (g *Graph) at(purpose, i int) int { return g.orders[purpose].at(i) }

// sums replaces numbers by what they and those before come to.
func sums(list []int) []int {
	for i := 1; i < len(list); i++ {
		list[i] += list[i-1]
	}
	return list
}

// Count returns how many objects of a kind there are.
func (g *Graph) Count(k Kind) int { return g.count[k] }

// Len returns the number of relationships.
func (g *Graph) Len() int { return g.relationships }

// Relationships yields them in the order of object, relation and subject.
func (g *Graph) Relationships() iter.Seq[Relationship] {
	return func(yield func(Relationship) bool) {
		var list []Relationship
		for k, of := range []func(list []Relationship, i int) []Relationship{g.ofUser, g.ofContent, g.ofInteraction} {
			for i := range g.count[k] {
				list = of(list[:0], i)
				for _, r := range list {
					if !yield(r) {
						return
					}
				}
			}
		}
	}
}

// ofUser appends the relationships of user i (from 0), as ofContent and
// ofInteraction do theirs.
func (g *Graph) ofUser(list []Relationship, i int) []Relationship {
	u := NewObject(User, i+1)
	visibility := Relationship{u, UserFollowers, u}
	if g.at(forVisible, i) < int(publicUsers*float64(g.count[User])) {
		visibility = Relationship{u, UserPublic, Everybody}
	}
	list = append(list, visibility, Relationship{u, Self, u})
	for _, s := range g.followersOf(i, g.followers[g.at(forRank, i)]) {
		list = append(list, Relationship{u, Follower, s})
	}
	return list
}

func (g *Graph) ofContent(list []Relationship, i int) []Relationship {
	c, owner := NewObject(Content, i+1), g.byActivity(g.published, g.at(forContent, i))
	visibility := Relationship{c, ContentFollowers, owner}
	if g.at(forOpen, i) < int(publicContent*float64(g.count[Content])+0.5) {
		visibility = Relationship{c, ContentPublic, Everybody}
	}
	return append(list, Relationship{c, Owner, owner}, visibility)
}

func (g *Graph) ofInteraction(list []Relationship, i int) []Relationship {
	o := NewObject(Interaction, i+1)
	popular := int(part(unit(g.seed, forPopularity, i)) * float64(g.count[Content]))
	parent := NewObject(Content, g.at(forParent, min(popular, g.count[Content]-1))+1)
	return append(list, Relationship{o, Creator, g.byActivity(g.reacted, g.at(forCreator, i))}, Relationship{o, Parent, parent})
}

// followersOf returns n users other than user i (from 0), in order.
func (g *Graph) followersOf(i, n int) []Object {
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

// byActivity returns the user whose share of the sums a position falls into.
func (g *Graph) byActivity(sums []int, position int) Object {
	rank := sort.SearchInts(sums, position+1)
	return NewObject(User, int(g.user[rank]))
}
