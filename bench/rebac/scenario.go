package rebac

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Kind is a kind of question.
type Kind int

// The kinds of questions.
const (
	Check         Kind = iota // may this user, with this resource?
	ListResources             // with which resources may this user?
	ListUsers                 // who may, with this resource?
)

// Question is one question with its right answer. A check has one id, 1, when the
// user may, and none otherwise.
type Question struct {
	User, Resource int // of a listing, the one that is given
	Want           Answer
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

// The names of scenarios. The first three and the listings of resources are the
// document's.
const (
	CheckDirect    = "check-manage-direct"
	CheckOrgAdmin  = "check-manage-org-admin"
	CheckGroup     = "check-view-group"
	CheckHierarchy = "check-view-hierarchy"
	CheckDenied    = "check-denied"
	ListHeavy      = "list-manage-heavy"
	ListRegular    = "list-view-regular"
	ListViewers    = "list-users-view"
)

// Scenarios returns the questions of a data set, the same ones for the same data.
// Users and resources of checks are drawn from all of which a path grants what is
// asked for: a question of check-view-hierarchy is granted by nothing but a group
// below one of the resource's.
func Scenarios(d *Data, o *Oracle) ([]Scenario, error) {
	p := picker{data: d, oracle: o, rand: rand.New(rand.NewPCG(d.Seed, streamQuestions))}
	list := []Scenario{
		{CheckDirect, Check, Manage, p.direct()},
		{CheckOrgAdmin, Check, Manage, p.orgAdmin()},
		{CheckGroup, Check, View, p.group()},
		{CheckHierarchy, Check, View, p.hierarchy()},
		{CheckDenied, Check, View, p.denied()},
		{ListHeavy, ListResources, Manage, []Question{p.resources(Manage, d.Heavy)}},
		{ListRegular, ListResources, View, []Question{p.resources(View, p.regular())}},
		{ListViewers, ListUsers, View, p.users()},
	}
	for _, s := range list {
		if len(s.Questions) == 0 {
			return nil, fmt.Errorf("size %s: no question for scenario %s; take a larger size or another seed", d.Size.Name, s.Name)
		}
	}
	return list, nil
}

// picker picks questions.
type picker struct {
	data   *Data
	oracle *Oracle
	rand   *rand.Rand
}

// yes is the answer of a check that is granted.
func yes() (a Answer) {
	a.add(1)
	return a
}

// draw returns as many of the candidates as a scenario takes, in random order.
func (p *picker) draw(candidates []Question) []Question {
	p.rand.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	return slices.Clip(candidates[:min(len(candidates), questionsEach)])
}

// direct are managing users with their resources.
func (p *picker) direct() []Question {
	var found []Question
	for _, list := range p.oracle.lists {
		for _, e := range list {
			if e.Relation == ManagerUser {
				found = append(found, Question{User: e.Subject, Resource: e.Resource, Want: yes()})
			}
		}
	}
	return p.draw(found)
}

// orgAdmin are admins with resources that nothing else lets them manage.
func (p *picker) orgAdmin() []Question {
	var found []Question
	for _, m := range p.data.Members {
		if m.Role != Manager {
			continue
		}
		first, _ := slices.BinarySearch(p.data.ResourceOrg, m.In)
		last, _ := slices.BinarySearch(p.data.ResourceOrg, m.In+1)
		for range min(questionsEach/10, last-first) {
			resource := first + p.rand.IntN(last-first) + 1
			if !p.listed(Manage, m.User, resource) {
				found = append(found, Question{User: m.User, Resource: resource, Want: yes()})
			}
		}
	}
	return p.draw(found)
}

// listed tells whether an entry of the resource's list is enough.
func (p *picker) listed(perm Permission, user, resource int) bool {
	return slices.ContainsFunc(p.oracle.lists[resource-1], func(e Entry) bool { return p.oracle.grants(e, perm, user) })
}

// group are members of viewing groups by themselves.
func (p *picker) group() []Question {
	members := p.byGroup()
	return p.viaGroups(func(group int) []int { return members[group] })
}

// byGroup returns the users of each group by themselves.
func (p *picker) byGroup() map[int][]int {
	members := map[int][]int{}
	for _, m := range p.data.GroupMembers {
		members[m.In] = append(members[m.In], m.User)
	}
	return members
}

// hierarchy are users of groups below viewing ones whom nothing else lets view.
func (p *picker) hierarchy() []Question {
	members := p.byGroup()
	below := make([][]int, p.data.Size.Groups)
	for group := range below {
		for user := 1; user <= p.data.Size.Users; user++ {
			if p.oracle.members[group].has(user) && !slices.Contains(members[group+1], user) {
				below[group] = append(below[group], user)
			}
		}
	}
	found := p.viaGroups(func(group int) []int { return below[group-1] })
	return slices.DeleteFunc(found, func(q Question) bool {
		for _, e := range p.oracle.lists[q.Resource-1] {
			byItself := e.Relation == ManagerUser || e.Relation == ViewerUser
			if byItself && e.Subject == q.User || !byItself && slices.Contains(members[e.Subject], q.User) {
				return true
			}
		}
		return p.oracle.admins[p.data.ResourceOrg[q.Resource-1]-1].has(q.User)
	})
}

// viaGroups draws a user for each viewing group of each resource.
func (p *picker) viaGroups(of func(group int) []int) []Question {
	var found []Question
	for _, list := range p.oracle.lists {
		for _, e := range list {
			if e.Relation != ViewerGroup {
				continue
			}
			if users := of(e.Subject); len(users) > 0 {
				user := users[p.rand.IntN(len(users))]
				found = append(found, Question{User: user, Resource: e.Resource, Want: yes()})
			}
		}
	}
	return p.draw(found)
}

// denied are users with resources of their organizations that they may not view,
// so that a check must look at everything.
func (p *picker) denied() []Question {
	var found []Question
	for range questionsEach * 4 {
		m := p.data.Members[p.rand.IntN(len(p.data.Members))]
		first, _ := slices.BinarySearch(p.data.ResourceOrg, m.In)
		last, _ := slices.BinarySearch(p.data.ResourceOrg, m.In+1)
		resource := first + p.rand.IntN(last-first) + 1
		if !p.oracle.May(View, m.User, resource) {
			found = append(found, Question{User: m.User, Resource: resource})
		}
	}
	return p.draw(found)
}

func (p *picker) resources(perm Permission, user int) Question {
	q := Question{User: user}
	p.oracle.Resources(perm, user, func(resource int) { q.Want.add(int64(resource)) })
	return q
}

// regular is the user, not an admin, whose view is nearest to what the size says.
func (p *picker) regular() int {
	admin := map[int]bool{}
	for _, m := range p.data.Members {
		admin[m.User] = admin[m.User] || m.Role == Manager
	}
	best, distance := 0, 0
	for user, n := range p.oracle.views() {
		d := max(n-p.data.Size.RegularView, p.data.Size.RegularView-n)
		if user > 0 && !admin[user] && (best == 0 || d < distance) {
			best, distance = user, d
		}
	}
	return best
}

// users are resources from all over, with everybody who may view them.
func (p *picker) users() []Question {
	var found []Question
	n := min(questionsEach, p.data.Size.Resources)
	for i := range n {
		q := Question{Resource: i*p.data.Size.Resources/n + 1}
		p.oracle.Users(View, q.Resource, func(user int) { q.Want.add(int64(user)) })
		found = append(found, q)
	}
	return p.draw(found)
}
