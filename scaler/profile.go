package scaler

import "github.com/varvedb/varve/store/entity"

// Profile describes a store's history. Time is divided into cycles of
// CycleBlocks blocks. Each cycle creates the same number of entities of each
// kind, in random order and at random blocks of the cycle. So the counts of a
// stream are exact, the cycle of the n-th entity of a kind is known, and a
// smaller stream is the beginning of a larger one, up to its last cycle.
type Profile struct {
	Name        string
	CycleBlocks uint64 // at least the entities of a cycle
	Cycles      uint64 // at scale 1

	// Batches is how many entities a non-empty block creates. The last batch of
	// a cycle takes the rest.
	Batches Histogram

	Kinds []Kind
}

// Kind is a kind of entities.
type Kind struct {
	Name  string // value of the attribute "type"
	Count uint64 // entities of this kind in a cycle

	// Runs is how many entities of the kind are created in succession, by one
	// account and, within a block, in one transaction. The last run of a cycle
	// takes the rest.
	Runs Histogram

	Accounts Accounts
	Fate     Fate
	Steps    []Step // at most maxSteps
	Payload  Payload
	Texts    []Text
	Numbers  []Number
}

// maxSteps is the largest number of steps in the life of an entity.
const maxSteps = 6

// Accounts are the accounts that create entities of a kind: Count accounts,
// starting with number First. Their activity follows Zipf's law: account
// First+n is chosen with a weight of 1/(n+1). Kinds may share accounts.
type Accounts struct{ First, Count uint64 }

// Fate is how entities of a kind end. The first three are relative weights.
type Fate struct {
	Persistent uint64 // never expires
	Ephemeral  uint64 // expires after Lifetime
	Deleted    uint64 // would never expire, and is deleted after DeletedAfter

	Lifetime     Histogram // blocks to live
	DeletedAfter Histogram // blocks
}

// Step is something that may happen to an entity after its creation. Steps
// happen in order. A step at or after the entity's end is skipped, and so is
// the extension of an entity that never expires.
type Step struct {
	Op       entity.Kind // Update, ExtendBTL or ChangeOwner
	Permille uint64      // of the entities of the kind
	After    Histogram   // blocks since the step before it or the creation
}

// Payload is the content of entities of a kind.
type Payload struct {
	Types []Choice  // content types
	Size  Histogram // bytes, at least MinPayload
	Form  Form
}

// Form is the format of a payload.
type Form uint8

// The forms of payloads. Zstandard compresses Document to about 55 % and Binary
// not at all.
const (
	Binary   Form = iota // random bytes
	Document             // a JSON object with words and random digits
)

// MinPayload is the minimum size of a payload in bytes, because a Document has
// a fixed frame.
const MinPayload = 64

// Text is a string attribute.
type Text struct {
	Name    string
	Missing uint64 // permille of the entities that lack it
	Source  TextSource

	Values []Choice // OneOf
	Later  []Choice // OneOf: after an Update; nil if that changes nothing

	Prefix string // Serial, Group, Pooled: before the number
	Digits int    // Serial, Group, Pooled: the number's least width
	Pool   uint64 // Pooled: how many different values

	Of     string // ID, Key: the kind that is referred to
	Window uint64 // ID, Key: among how many of the newest; 0: among all
	Hot    uint64 // ID, Key: permille that go to the newest whose number is a multiple of Window

	Length int // Hex: digits; Words: words
}

// TextSource selects how the value of a string attribute is generated.
type TextSource uint8

// The sources of text values.
const (
	OneOf  TextSource = iota // one of Values by weight
	Serial                   // the entity's number within its kind, from 1
	Next                     // Serial of the next in the run; "" in the last
	Group                    // number of the first of the run
	Pooled                   // a number from 1 to Pool
	ID                       // Serial of an entity of kind Of that exists already
	Key                      // key of an entity of kind Of that exists already
	Hex                      // random digits, without 0x
	Words                    // a few words
)

// Number is a numeric attribute.
type Number struct {
	Name    string
	Missing uint64 // permille of the entities that lack it
	Source  NumberSource
	Values  Histogram // Drawn
	Varies  bool      // Drawn: an Update draws again
}

// NumberSource selects how the value of a numeric attribute is generated.
type NumberSource uint8

// The sources of numeric values.
const (
	Drawn    NumberSource = iota // from Values
	Clock                        // time of the block that writes it, in Unix seconds
	Position                     // position in the run, from 0
)

// The time of a block in Unix seconds is epoch + number × BlockSeconds.
const (
	BlockSeconds = 2
	epoch        = 1_700_000_000
)

// The attributes that the store adds to every version: $key, $owner, $creator;
// and $expiration, $createdAtBlock, $sequence, $txIndex, $opIndex. They are
// rows of the attribute tables like the user's attributes.
const (
	SyntheticTexts   = 3
	SyntheticNumbers = 5
)

// Entities returns how many entities a cycle creates.
func (p *Profile) Entities() (n uint64) {
	for i := range p.Kinds {
		n += p.Kinds[i].Count
	}
	return n
}

// serial returns the attribute that numbers the entities of the kind, or nil.
func (k *Kind) serial() *Text {
	for i := range k.Texts {
		if k.Texts[i].Source == Serial {
			return &k.Texts[i]
		}
	}
	return nil
}

// horizon returns for how many blocks after its creation an entity may still
// change.
func (k *Kind) horizon() uint64 {
	var steps, lifetimes uint64 = 0, 1
	for _, s := range k.Steps {
		steps += s.After.high()
		if s.Op == entity.ExtendBTL {
			lifetimes++
		}
	}
	if k.Fate.Ephemeral > 0 {
		steps = max(steps, lifetimes*k.Fate.Lifetime.high())
	}
	if k.Fate.Deleted > 0 {
		steps = max(steps, k.Fate.DeletedAfter.high())
	}
	return steps
}
