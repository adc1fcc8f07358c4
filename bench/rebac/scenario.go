package rebac

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/varvedb/varve/internal/splitmix"
)

// Kind is a kind of question, as its statements are called.
type Kind string

// The kinds of questions.
const (
	Check         Kind = "check" // may this user, with this resource?
	ListResources Kind = "list"  // with which resources may this user?
	ListUsers     Kind = "users" // who may, with this resource?
)

// Question is one question with its right answer. A check has one id, 1, when the user may, and none otherwise.
type Question struct {
	User, Resource int // of a listing, the one that is given
	Want           Answer
}

// Answer is what a question has for an answer: how many ids, and a sum of what each is scrambled to. Two sets of ids
// of one sum and number are the same but for a chance of one in 2⁶⁴; an id that comes twice, or another one, shows.
type Answer struct {
	Count int
	Sum   uint64
}

// add takes one more id.
func (a *Answer) add(id int64) {
	a.Count++
	a.Sum += splitmix.Scramble(uint64(id))
}

// answer is that of a check.
func answer(may bool) (a Answer) {
	if may {
		a.add(1)
	}
	return a
}

// Scenario is questions of one kind that are asked again and again.
type Scenario struct {
	Name       string
	Kind       Kind
	Permission Permission
	Questions  []Question
}

// questionsEach bounds the questions of a scenario of checks.
const questionsEach = 1000

// ScenarioNames are those of Scenarios, which are the same of all data.
var ScenarioNames = []string{
	"check-manage-direct", "check-manage-org-admin", "check-view-group", "check-view-hierarchy", "check-denied",
	"list-manage-heavy", "list-view-regular", "list-users-view",
}

// Scenarios returns the questions of a data set, the same ones for the same data. The first three and the listings of
// resources are the document's. Users and resources of checks are drawn from all of which a path grants what is asked
// for: a question of check-view-hierarchy is granted by nothing but a group below one of the resource's.
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
	// Who may view, with each of some resources?
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

// evenly returns at most so many of the numbers from 1 to n; all for 0.
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

// resourcesOf asks for the resources of each of the users.
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
	oracle, flat *Oracle // flat knows of no groups in groups
	rand         *rand.Rand
}

// draw returns as many of the candidates as a scenario takes, in random order.
func (p *picker) draw(candidates []Question) []Question {
	p.rand.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	return slices.Clip(candidates[:min(len(candidates), questionsEach)])
}

// entries asks a user for each entry of a relation: none when user returns 0.
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

// resource draws one of an organization.
func (p *picker) resource(org int) int {
	all := p.data.pools[org-1].resources
	return all[p.rand.IntN(len(all))]
}

// orgAdmin are admins with resources that nothing else lets them manage.
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

// viaGroups draws a user for each viewing group of each resource, of those that fit.
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

// hierarchy are users of groups below viewing ones whom nothing else lets view.
func (p *picker) hierarchy() []Question {
	below := p.viaGroups(func(user, group int) bool { return !p.flat.members[group][user] })
	return p.draw(slices.DeleteFunc(below, func(q Question) bool { return p.flat.May(View, q.User, q.Resource) }))
}

// denied are users with resources of their organizations that they may not view,
// so that a check must look at everything.
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

// regular is the user, not an admin, whose view is nearest to what the size says.
func (p *picker) regular() []Question {
	admins := slices.Concat(p.data.Admins...)
	list := slices.DeleteFunc(resourcesOf(p.oracle, View, evenly(p.data.Size.Users, 0)), func(q Question) bool { return slices.Contains(admins, q.User) })
	distance := func(q Question) int {
		return max(q.Want.Count-p.data.Size.RegularView, p.data.Size.RegularView-q.Want.Count)
	}
	return []Question{slices.MinFunc(list, func(a, b Question) int { return distance(a) - distance(b) })}
}
