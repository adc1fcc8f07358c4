package service

import (
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/entity"
)

// ErrChanged: an entity is not as the guard of a write wants it.
var ErrChanged = errors.New("the entity has changed")

// Guard is what must hold of an entity for it to be written. It is judged where
// blocks are made, so that nothing comes between the judgement and the write. The
// zero value asks for nothing.
type Guard struct {
	Match     *Versions // the entity is there, at one of these
	NoneMatch *Versions // it is not there, or at none of these
}

// Versions are block numbers. A guard asks that an entity was last modified in
// one of them, or in any block. Two states of an entity never have the same
// number.
type Versions struct {
	Any  bool
	List []uint64
}

// VersionOf returns the version of an entity.
func VersionOf(e *entity.Entity) uint64 { return e.LastModifiedAtBlock }

// Has reports whether an entity, nil when there is none, is at one of the
// versions.
func (v *Versions) Has(e *entity.Entity) bool {
	return e != nil && (v.Any || slices.Contains(v.List, VersionOf(e)))
}

// check fails with ErrChanged when the guard does not hold of an entity.
func (g *Guard) check(e *entity.Entity) error {
	if (g.Match == nil || g.Match.Has(e)) && (g.NoneMatch == nil || !g.NoneMatch.Has(e)) {
		return nil
	}
	if e == nil {
		return fmt.Errorf("%w: there is none", ErrChanged)
	}
	return fmt.Errorf("%w: it is at version %d", ErrChanged, VersionOf(e))
}
