// Package fault damages stores and takes their resources away, and watches
// what they say.
//
// Flips makes a small store, copies its files, changes one place of a copy, opens
// it, lets it check itself and asks it everything that a model of its history can
// answer. What comes of it is one of
//
//	refused   it does not open
//	found     a check finds it
//	unchecked a check could not look at something, and finds nothing
//	reading   the check finds nothing, but a read fails
//	tail      the engine takes the end of its log for torn: the store is at an
//	          earlier block or event, with the right answers of that time
//	harmless  every answer is right
//	SILENT    an answer is wrong and nothing says so
//
// The last one is a violation.
package fault
