// Package rebac is the permission workload: users in organizations and groups, groups that lie in others, and
// resources with access lists, as in the user's benchmark of permission checks over several databases.
//
// A Size says how much of everything there is, Generate makes the small relations and streams the access lists,
// an Oracle knows every answer, and Load puts the same into an engine. Ask asks the questions of a Scenario
// there, with the closure of group membership materialised in a table or computed on the fly by a recursive
// query, and every answer is compared with the oracle's.
//
// # Who may
//
// Roles come from below: whoever is a member or a manager of a group is it in the groups above. A resource may be
// managed by its managing users, by the managers of its managing groups, and by the admins of its organization. It
// may be viewed by all of these, by its viewing users, and by the members and managers of its viewing groups.
package rebac
