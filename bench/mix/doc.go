// Package mix makes streams of read operations with known answers: the mixes A,
// B and C over the base profile of package scaler, W over any data, and the reads
// of a data centre of package dcseed. The same seed gives the same operations.
//
//	oracle := mix.NewOracle()
//	err := oracle.Follow(blocks)               // of the store
//	reads, err := mix.New(mix.A, oracle)
//	draw := reads.Stream(mix.StreamOptions{HeadOnly: !ents.Temporal()})
//	reader := mix.NewReader(ents, nil)
//	for range 10_000 {
//		op := draw(random)
//		answer, err := reader.Do(ctx, op)       // timed
//		err = reads.Check(op, answer)           // not timed
//	}
//
// While blocks are written, give each to Reads.Advance before the store applies
// it, so that a store that shows a block is never ahead of the oracle. The
// oracle keeps the answers of earlier blocks, because a reader may still ask for
// them.
//
// # Questions
//
// The seed gives each mix as SQL over Arkiv's tables. These are its questions
// and weights, with mistakes of that SQL corrected. Its whole entity multiplies
// strings by numbers; here it is one entity. Its "entity at block N" draws N
// twice; here N is one block. Its scans and reads by key compare to_block
// wrongly or not at all; here all see visible versions. Its window of blocks
// may be empty; here the bounds are drawn until it is not. Its votes of a user
// are all entities that the user created; here they are votes.
//
// Queries without an order return the newest creations first, which is the order
// of the store. The seed's scans by attribute ask for keys alone; here they fetch
// the metadata and no attributes. Its reads by key ask for string attributes
// alone; here they fetch all attributes without the payload.
//
// Drawn values exist: entities, values of attributes and creators are drawn
// from visible entities, and entities at a past block from the entities that
// were visible there. (The seed draws blocks and chunks from fixed ranges, so
// that most find none.) Counts of GPUs are 0 to 4 and windows of blocks any, as
// in the seed.
//
// W draws from the data: entities, attributes and their values (half of the
// values by frequency, the others mostly rare), creators in the same way, and
// ranges of blocks with changes, from one to all of them. The seed gives no
// limit for its creators; here it is the newest 100, as in A.
package mix
