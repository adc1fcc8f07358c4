// Package social is the load of a social network on its permissions: the test with which AuthZed took SpiceDB
// to a million requests a second in 2023. Users publish content, public or for their followers; others interact
// with it; everybody may follow and block. 60 % of the checks ask whether a user may see a piece of content, 30
// % another user's profile, 10 % an interaction, and 1 % of all requests write a relationship.
//
// The data is relationships "subject has relation to object", as SpiceDB stores them, in the numbers of
// AuthZed's table. Its schema is not published beyond what it allows; this one does that:
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
// A Graph is the data, an Oracle knows the answer to every question at every point of the history of writes, a
// Store holds the data in an engine, a Mix says what is asked, and Run does it, and compares every answer. A
// check that runs beside writes must see one of the states that these go through in its time.
package social
