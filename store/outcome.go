package store

import (
	"errors"
	"slices"
)

// Outcome is what came of looking for damage.
type Outcome string

// The outcomes.
const (
	Sound       Outcome = "sound"         // it was looked at, and nothing is wrong
	Unavailable Outcome = "not available" // a part of which this store or engine has no check; it says nothing
	NotChecked  Outcome = "not checked"   // it could not be looked at, or not all of it: nothing is known
	Damaged     Outcome = "damaged"       // something is wrong, whatever else could not be looked at
)

// OutcomeOf tells what an error of a check, of Verify or of a read says of the
// store. Only ErrCorrupt is damage, which engines give for what their libraries call
// damage, and the store for what contradicts itself. Any other error, known or not,
// only says that somebody could not look: the time was up, the server is gone, the
// right is missing.
func OutcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Sound
	case errors.Is(err, ErrCorrupt):
		return Damaged
	}
	return NotChecked
}

// worse returns the outcome of two parts together. That a part has no check does not
// make the others less sound.
func worse(a, b Outcome) Outcome {
	order := []Outcome{Unavailable, Sound, NotChecked, Damaged}
	return order[max(1, slices.Index(order, a), slices.Index(order, b))]
}
