package driver

import "context"

// Tuner is implemented by engines that keep settings of a table's upkeep with it.
type Tuner interface {
	// Tune gives tables of the store the settings that they have not. One that this
	// user may not change, or that somebody is at work on, is left for the next
	// opening.
	Tune(ctx context.Context, tables []*Table) error
}
