// Package scaler makes block streams of any size: from a profile, whose
// entities are shaped like a production store's, or from another stream, by
// copying it.
//
//   - Mendoza is the base profile; Stream generates it at a scale, and Plan
//     tells exactly what Stream will generate, without the contents.
//   - Scale multiplies a Source – a generated one, a block tar, a database –
//     by a whole factor with fresh keys.
//
// The same options give the same bytes on every machine: generation uses
// integers only (math functions and fused multiplication differ between
// processors) and no generator of the standard library, which may change.
//
// Memory does not grow with the stream. No entity is remembered: everything
// about it follows from the seed, its kind and its number within the kind.
// Operations after the creation come within a horizon that the profile bounds,
// and wait in a queue no longer than that.
package scaler
