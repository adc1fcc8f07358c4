package eventlog

// Made waits until the rows of the batch that is being written are made.
func (t *Tail) Made() {
	if t.batch != nil {
		<-t.batch.ready
	}
}

// Batch returns the end of the batch that is being written, and whether there is one.
func (t *Tail) Batch() (end uint64, ok bool) { return t.end.batch, t.end.batch > t.end.indexed }

// Entries returns the number of events in memory.
func (t *Tail) Entries() int { return len(t.older.entries) + len(t.newer.entries) }
