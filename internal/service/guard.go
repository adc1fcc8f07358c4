package service

import (
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/entity"
)

// ErrChanged: an entity does not satisfy the guard of a write.
var ErrChanged = errors.New("the entity has changed")

// Guard is a condition on an entity for writing it. It is checked where blocks
// are made, so that no other write can come between the check and the write.
// The zero value always holds.
type Guard struct {
	Match     *Versions // the entity exists, with one of these versions
	NoneMatch *Versions // the entity does not exist, or has none of these versions
}

// Versions is a condition on the version of an entity: its number, the block of
// the last modification, must be one of them, or any if the entity must only
// exist. Two states of an entity never have the same number.
type Versions struct {
	Any  bool
	List []uint64
}

// VersionOf returns the version of an entity.
func VersionOf(e *entity.Entity) uint64 { return e.LastModifiedAtBlock }

// Has reports whether an entity (nil when there is none) has one of the
// versions.
func (v *Versions) Has(e *entity.Entity) bool {
	return e != nil && (v.Any || slices.Contains(v.List, VersionOf(e)))
}

// check fails with ErrChanged when the guard does not hold for an entity.
func (g *Guard) check(e *entity.Entity) error {
	if (g.Match == nil || g.Match.Has(e)) && (g.NoneMatch == nil || !g.NoneMatch.Has(e)) {
		return nil
	}
	if e == nil {
		return fmt.Errorf("%w: there is none", ErrChanged)
	}
	return fmt.Errorf("%w: it is at version %d", ErrChanged, VersionOf(e))
}
