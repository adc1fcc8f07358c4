// Package crashtest tries to make a store lose something. A worker process writes
// to a store, acknowledges what was committed in a journal of its own, and is
// ended at a moment that nobody chose: killed, its disk taken away as it is (see
// Power), or filled (see Full). The next worker opens what is left, compares it with what the
// journal says must be there, and goes on.
//
// What a worker expects comes from the journal alone: every step is drawn from a
// seed that the journal has, so the model of the store (model.Model for
// entities, the list of appends for events) is made anew in each process. A store
// in which an acknowledged step is missing, an unknown one is present, a part of
// one is there, or an index answers otherwise than the model, is a violation.
//
// Torture runs this trial and others (Trial) on every engine and layout in turn.
package crashtest
