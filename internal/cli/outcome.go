package cli

import (
	"errors"
	"fmt"

	"github.com/varvedb/varve/store"
)

// checkExitCodes is what the help of check and verify says of them.
const checkExitCodes = `Exit codes: 0 sound; 1 something is wrong with the store; 3 not checked: nothing wrong was found, but not everything could be looked at, and the reason is said; 2 wrong usage; 130 interrupted.`

// errNotChecked: check or verify could not look at the store, or not at all of it.
var errNotChecked = errors.New("not checked, which says nothing of the store; mend what was in the way and check again")

// foundError is something wrong that check or verify found, whatever else failed.
type foundError struct{ error }

// judged gives the error of a check its exit code: only what was found to be wrong
// has that of an error.
func judged(err error) error {
	if err == nil || errors.Is(err, store.ErrCorrupt) || errors.As(err, new(foundError)) || errors.As(err, new(usageError)) {
		return err
	}
	return fmt.Errorf("%w: %w", errNotChecked, err)
}
