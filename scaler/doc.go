// Package scaler makes block streams of any size: from a profile, whose
// entities are shaped like a production store's, or from another stream, by
// copying it.
//
//   - Mendoza is the base profile; Stream generates it at a scale, and Plan
//     counts exactly the entities and rows that Stream will generate.
//   - Scale multiplies a Source – a generated one, a block tar, a database –
//     by a whole factor with fresh keys.
//   - Merged joins small blocks, and Split cuts a history into what a store
//     holds and what is written to it afterwards.
//
// The same options give the same bytes on every machine: generation uses
// integers only (math functions and fused multiplication differ between
// processors) and no generator of the standard library, which may change.
//
// Memory does not grow with the stream, except in Merged. No entity is kept,
// because everything about it follows from the seed, its kind and its number
// within the kind. Later operations on an entity wait in a queue. They come
// within a horizon that the profile bounds, so the queue is bounded too.
package scaler
