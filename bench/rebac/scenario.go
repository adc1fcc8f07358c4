package rebac

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/varvedb/varve/internal/splitmix"
)

// Kind is a kind of question, named as its statements.
type Kind string

// The kinds of questions.
const (
	Check         Kind = "check" // may this user, with this resource?
	ListResources Kind = "list"  // with which resources may this user?
	ListUsers     Kind = "users" // who may, with this resource?
)

// Question is one question with its right answer. The answer to a check is the
// id 1 if the user is permitted, and nothing otherwise.
type Question struct {
	User, Resource int // of a listing only the given one is set
	Want           Answer
}

// Answer summarises the ids in an answer: their number, and the sum of their
// hashes. Two different sets of ids have the same summary with a chance of one
// in 2⁶⁴; repeated or exchanged ids change it.
type Answer struct {
	Count int
	Sum   uint64
}

// add adds an id.
func (a *Answer) add(id int64) {
	a.Count++
	a.Sum += splitmix.Scramble(uint64(id))
}

// answer returns the answer to a check.
func answer(may bool) (a Answer) {
	if may {
		a.add(1)
	}
	return a
}

// Scenario is a list of questions of one kind that are asked repeatedly.
type Scenario struct {
	Name       string
	Kind       Kind
	Permission Permission
	Questions  []Question
}

// questionsEach bounds the questions of a scenario of checks.
const questionsEach = 1000

// ScenarioNames are the names of the Scenarios, the same for all data.
var ScenarioNames = []string{
	"check-manage-direct", "check-manage-org-admin", "check-view-group", "check-view-hierarchy", "check-denied",
	"list-manage-heavy", "list-view-regular", "list-users-view",
}

// Scenarios returns the questions of a data set, which depend on the data only.
// The first three and the listings of resources come from the document. The
// questions of a check are drawn from all pairs of user and resource for which
// exactly one path grants the permission: for check-view-hierarchy, only a
// group below one of the resource's groups.
func Scenarios(d *Data, o *Oracle) ([]Scenario, error) {
	p := picker{data: d, oracle: o, rand: d.stream(streamQuestions)}
	flat := *d
	flat.Hierarchy = nil
	p.flat = NewOracle(&flat)
	list := []Scenario{
		{ScenarioNames[0], Check, Manage, p.draw(p.entries(ManagerUser, func(e Entry) int { return e.Subject }))},
		{ScenarioNames[1], Check, Manage, p.orgAdmin()},
		{ScenarioNames[2], Check, View, p.draw(p.viaGroups(func(user, group int) bool { return p.flat.members[group][user] }))},
		{ScenarioNames[3], Check, View, p.hierarchy()},
		{ScenarioNames[4], Check, View, p.denied()},
		{ScenarioNames[5], ListResources, Manage, resourcesOf(o, Manage, []int{d.Heavy})},
		{ScenarioNames[6], ListResources, View, p.regular()},
		{ScenarioNames[7], ListUsers, View, make([]Question, 0, questionsEach)},
	}
	// For each of some resources, who may view it?
	for _, resource := range evenly(d.Size.Resources, questionsEach) {
		q := Question{Resource: resource}
		for _, user := range o.users(View, resource).list() {
			q.Want.add(int64(user))
		}
		list[7].Questions = append(list[7].Questions, q)
	}
	for _, s := range list {
		if len(s.Questions) == 0 {
			return nil, fmt.Errorf("size %s: no question for scenario %s; take a larger size or another seed", d.Size.Name, s.Name)
		}
	}
	return list, nil
}

// evenly returns at most `most` of the numbers from 1 to n, evenly spaced; all
// for 0.
func evenly(n, most int) []int {
	if most == 0 || most > n {
		most = n
	}
	list := make([]int, most)
	for k := range list {
		list[k] = k*n/most + 1
	}
	return list
}

// resourcesOf asks for the resources of each user.
func resourcesOf(o *Oracle, p Permission, users []int) []Question {
	want := make([]Answer, o.data.Size.Users+1)
	for i := range o.lists {
		for _, user := range o.users(p, i+1).list() {
			want[user].add(int64(i + 1))
		}
	}
	list := make([]Question, len(users))
	for i, user := range users {
		list[i] = Question{User: user, Want: want[user]}
	}
	return list
}

// picker picks questions.
type picker struct {
	data         *Data
	oracle, flat *Oracle // flat ignores groups in groups
	rand         *rand.Rand
}

// draw returns candidates in random order, at most as many as a scenario takes.
func (p *picker) draw(candidates []Question) []Question {
	p.rand.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	return slices.Clip(candidates[:min(len(candidates), questionsEach)])
}

// entries makes a question for each entry of a relation; user chooses the user,
// 0 for none.
func (p *picker) entries(relation Relation, user func(e Entry) int) []Question {
	var found []Question
	for e := range p.data.Entries() {
		if e.Relation != relation {
			continue
		}
		if user := user(e); user != 0 {
			found = append(found, Question{User: user, Resource: e.Resource, Want: answer(true)})
		}
	}
	return found
}

// resource draws a resource of an organization.
func (p *picker) resource(org int) int {
	all := p.data.pools[org-1].resources
	return all[p.rand.IntN(len(all))]
}

// orgAdmin asks for admins with resources that they may manage only as admins.
func (p *picker) orgAdmin() []Question {
	var found []Question
	for org, admins := range p.data.Admins {
		for _, user := range admins {
			for range questionsEach / 10 {
				if resource := p.resource(org + 1); !p.oracle.listed(Manage, resource)[user] {
					found = append(found, Question{User: user, Resource: resource, Want: answer(true)})
				}
			}
		}
	}
	return p.draw(found)
}

// viaGroups draws, for each viewing group of each resource, one of the users
// who fit.
func (p *picker) viaGroups(fits func(user, group int) bool) []Question {
	users := make([][]int, p.data.Size.Groups)
	for group := range users {
		users[group] = slices.DeleteFunc(p.oracle.members[group].list(), func(user int) bool { return !fits(user, group) })
	}
	return p.entries(ViewerGroup, func(e Entry) int {
		if of := users[e.Subject-1]; len(of) > 0 {
			return of[p.rand.IntN(len(of))]
		}
		return 0
	})
}

// hierarchy asks for users who may view only because their group is below a
// viewing group.
func (p *picker) hierarchy() []Question {
	below := p.viaGroups(func(user, group int) bool { return !p.flat.members[group][user] })
	return p.draw(slices.DeleteFunc(below, func(q Question) bool { return p.flat.May(View, q.User, q.Resource) }))
}

// denied asks for users and resources of their organizations that they may not
// view, so that a check must examine every path.
func (p *picker) denied() []Question {
	var found []Question
	for range questionsEach * 4 {
		org := p.rand.IntN(p.data.Size.Orgs)
		user, resource := p.data.Members[org][p.rand.IntN(len(p.data.Members[org]))], p.resource(org+1)
		if !p.oracle.May(View, user, resource) {
			found = append(found, Question{User: user, Resource: resource})
		}
	}
	return p.draw(found)
}

// regular returns the non-admin whose number of viewable resources is nearest
// to the size's RegularView.
func (p *picker) regular() []Question {
	admins := slices.Concat(p.data.Admins...)
	list := slices.DeleteFunc(resourcesOf(p.oracle, View, evenly(p.data.Size.Users, 0)), func(q Question) bool { return slices.Contains(admins, q.User) })
	distance := func(q Question) int {
		return max(q.Want.Count-p.data.Size.RegularView, p.data.Size.RegularView-q.Want.Count)
	}
	return []Question{slices.MinFunc(list, func(a, b Question) int { return distance(a) - distance(b) })}
}
