// Package social is the load of a social network on its permissions: the test
// with which AuthZed took SpiceDB to a million requests a second in 2023. Users
// publish content, public or for their followers; others interact with it;
// everybody may follow and block. 60 % of the checks ask whether a user may see
// a piece of content, 30 % another user's profile, 10 % an interaction, and 1 %
// of all requests write a relationship.
//
// The data are relationships "subject has relation to object", as SpiceDB stores
// them, in the numbers of AuthZed's table. AuthZed has published the
// permissions, but not the schema. This schema gives the same permissions:
//
//	definition user {
//	    relation self: user
//	    relation follower: user
//	    relation blocked: user
//	    relation visibility: user:* | user#follower
//	    permission view = self + (visibility - blocked)
//	}
//	definition content {
//	    relation owner: user
//	    relation visibility: user:* | user#follower
//	    permission view = owner + (visibility - owner->blocked)
//	}
//	definition interaction {
//	    relation creator: user
//	    relation parent: content
//	    permission view = parent->view - creator->blocked
//	}
//
// A Graph has the data, and a Store holds them in an engine. An Oracle knows the
// answer to every question at every point of the history of writes. Run sends
// the requests of a Mix and compares every answer. The answer to a check that
// runs concurrently with writes must be right in a state of the data during the
// check.
package social
