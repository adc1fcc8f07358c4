package social

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/varvedb/varve/internal/splitmix"
)

// Config says which graph to make.
type Config struct {
	Relationships int    `json:"relationships"` // MinRelationships or more
	Seed          uint64 `json:"seed"`

	// Blocks is how many users each user has blocked at first, in addition to
	// Relationships. AuthZed's table has none, so only writes block.
	Blocks int `json:"blocks,omitempty"`
}

// Limits of Config.
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

// Graph is the relationships of a configuration: the same ones each time.
type Graph struct {
	cfg   Config
	count [kinds]int

	followers []int       // of users by rank
	published []int       // content of the users up to a rank, summed up
	reacted   []int       // interactions of the users up to a rank, summed up
	rank      permutation // of users by number
	user      []uint32    // numbers of users by rank

	popular pareto // content by its interactions
	content, visible, open,
	creator, parent permutation
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
	forBlocked
)

// New prepares a graph. It takes memory for each user, one in 192
// relationships.
func New(cfg Config) (*Graph, error) {
	if cfg.Relationships < MinRelationships || cfg.Relationships > MaxRelationships {
		return nil, fmt.Errorf("social graph of %d relationships: give a number from %d to %d", cfg.Relationships, MinRelationships, MaxRelationships)
	}
	users := cfg.Relationships / perUser
	if cfg.Blocks < 0 || cfg.Blocks > users/4 {
		return nil, fmt.Errorf("social graph: %d blocked users of %d: give 0 to a quarter of them", cfg.Blocks, users)
	}
	rest := cfg.Relationships % perUser
	content, interactions := contentPerUser*users+rest/2, interactionsPerUser*users
	g := &Graph{cfg: cfg, count: [kinds]int{User: users, Content: content, Interaction: interactions}}
	activity := newPareto(users)
	g.followers = activity.counts(users, followersPerUser*users+rest%2, (users-1)/2)
	g.published = sums(activity.counts(users, content, content))
	g.reacted = sums(activity.counts(users, interactions, interactions))
	g.popular = newPareto(content)
	g.permute()
	return g, nil
}

func (g *Graph) permute() {
	order := func(k Kind, purpose uint64) permutation { return newPermutation(g.count[k], g.cfg.Seed, purpose) }
	g.rank = order(User, forRank)
	g.visible = order(User, forVisible)
	g.content, g.open, g.parent = order(Content, forContent), order(Content, forOpen), order(Content, forParent)
	g.creator = order(Interaction, forCreator)
	g.user = make([]uint32, g.count[User])
	for i := range g.user {
		g.user[g.rank.at(i)] = uint32(i + 1)
	}
}

// sums replaces numbers by what they and those before come to.
func sums(list []int) []int {
	for i := 1; i < len(list); i++ {
		list[i] += list[i-1]
	}
	return list
}

// Config returns what the graph was made from.
func (g *Graph) Config() Config { return g.cfg }

// Count returns how many objects of a kind there are.
func (g *Graph) Count(k Kind) int { return g.count[k] }

// Len returns the number of relationships.
func (g *Graph) Len() int { return g.cfg.Relationships + g.cfg.Blocks*g.count[User] }

// Relationships yields them in the order of object, relation and subject.
func (g *Graph) Relationships() iter.Seq[Relationship] {
	return func(yield func(Relationship) bool) {
		_ = g.eachUser(yield) && g.eachContent(yield) && g.eachInteraction(yield)
	}
}

func (g *Graph) eachUser(yield func(Relationship) bool) bool {
	public := int(publicUsers * float64(g.count[User]))
	for i := range g.count[User] {
		u := NewObject(User, i+1)
		visibility := Relationship{u, UserFollowers, u}
		if g.visible.at(i) < public {
			visibility = Relationship{u, UserPublic, Everybody}
		}
		if !yield(visibility) || !yield(Relationship{u, Self, u}) {
			return false
		}
		for _, s := range g.some(i, g.followers[g.rank.at(i)], forFollowers) {
			if !yield(Relationship{u, Follower, s}) {
				return false
			}
		}
		for _, s := range g.some(i, g.cfg.Blocks, forBlocked) {
			if !yield(Relationship{u, Blocked, s}) {
				return false
			}
		}
	}
	return true
}

// some returns n users other than user i (from 0), in order.
func (g *Graph) some(i, n int, purpose uint64) []Object {
	r := rand.New(rand.NewPCG(g.cfg.Seed, splitmix.Scramble(purpose^splitmix.Scramble(uint64(i)))))
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

func (g *Graph) eachContent(yield func(Relationship) bool) bool {
	public := int(publicContent*float64(g.count[Content]) + 0.5)
	for i := range g.count[Content] {
		c, owner := NewObject(Content, i+1), g.byActivity(g.published, g.content.at(i))
		visibility := Relationship{c, ContentFollowers, owner}
		if g.open.at(i) < public {
			visibility = Relationship{c, ContentPublic, Everybody}
		}
		if !yield(Relationship{c, Owner, owner}) || !yield(visibility) {
			return false
		}
	}
	return true
}

func (g *Graph) eachInteraction(yield func(Relationship) bool) bool {
	for i := range g.count[Interaction] {
		o := NewObject(Interaction, i+1)
		popular := int(g.popular.part(unit(g.cfg.Seed, forPopularity, i)) * float64(g.count[Content]))
		parent := NewObject(Content, g.parent.at(min(popular, g.count[Content]-1))+1)
		if !yield(Relationship{o, Creator, g.byActivity(g.reacted, g.creator.at(i))}) || !yield(Relationship{o, Parent, parent}) {
			return false
		}
	}
	return true
}

// byActivity returns the user whose share of the sums a position falls into.
func (g *Graph) byActivity(sums []int, position int) Object {
	rank := sort.SearchInts(sums, position+1)
	return NewObject(User, int(g.user[rank]))
}
