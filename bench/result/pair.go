package result

import "slices"

// AAKey is the key of a configuration that is measured twice in a block: the second
// measurement has the value 2, the first one has 1 or has no such key. How far they
// are apart is noise. The second one is no further repetition, since both share what
// else went on.
const AAKey = "aa"

// Again tells whether a record is such a second measurement.
func (r *Record) Again() bool { return r.Config.Get(AAKey) == "2" }

// Once returns the record without saying which of two measurements it is: both have
// its key.
func (r *Record) Once() *Record {
	once := *r
	once.Config = slices.DeleteFunc(slices.Clone(r.Config), func(p Pair) bool { return p.Key == AAKey })
	return &once
}
