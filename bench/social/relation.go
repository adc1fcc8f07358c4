package social

import "fmt"

// Object identifies a user, a piece of content or an interaction: the kind in
// the bits from kindShift on, the number below. User numbers begin with 1 and
// are small, because engines store small numbers in few bytes.
type Object int64

// Kind is a type of objects.
type Kind uint8

// The kinds, in the order in which their objects are stored.
const (
	User Kind = iota
	Content
	Interaction
	kinds
)

// Kinds are all of them.
var Kinds = []Kind{User, Content, Interaction}

const kindShift = 40

// Everybody is the subject "user:*" of a public object.
const Everybody Object = 0

// NewObject returns the nth object of a kind, from 1.
func NewObject(k Kind, n int) Object { return Object(k)<<kindShift | Object(n) }

// Kind returns the kind of an object.
func (o Object) Kind() Kind { return Kind(o >> kindShift) }

// Number returns the number of an object among those of its kind, from 1.
func (o Object) Number() int { return int(o & (1<<kindShift - 1)) }

// String returns "content:7"; "user:*" for everybody.
func (o Object) String() string {
	if o == Everybody {
		return "user:*"
	}
	return fmt.Sprintf("%s:%d", o.Kind(), o.Number())
}

var kindNames = [kinds]string{"user", "content", "interaction"}

// String returns the kind's name in the schema.
func (k Kind) String() string { return kindNames[k] }

// Relation is the relation of a subject to an object. The numbers are stored in
// the database.
type Relation uint8

// The relations, with the kind of their objects and subjects.
const (
	UserPublic       Relation = iota + 1 // user#visibility@user:*
	UserFollowers                        // user#visibility@user#follower
	Self                                 // user#self@user
	Follower                             // user#follower@user
	Blocked                              // user#blocked@user
	Owner                                // content#owner@user
	ContentPublic                        // content#visibility@user:*
	ContentFollowers                     // content#visibility@user#follower
	Creator                              // interaction#creator@user
	Parent                               // interaction#parent@content
	relationsEnd
)

// Relationship is one row: subject has the relation to the object. For
// visibility to followers the subject is the user whose followers may see the
// object.
type Relationship struct {
	Object   Object
	Relation Relation
	Subject  Object
}
