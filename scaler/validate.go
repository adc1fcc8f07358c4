package scaler

import (
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/entity"
)

// Validate tells what in a profile cannot be generated.
func (p *Profile) Validate() error {
	if err := p.validate(); err != nil {
		return fmt.Errorf("profile %q: %w", p.Name, err)
	}
	return nil
}

func (p *Profile) validate() error {
	if len(p.Kinds) == 0 || len(p.Kinds) > 128 {
		return fmt.Errorf("%d kinds, want 1 to 128", len(p.Kinds))
	}
	if p.Cycles == 0 || p.Entities() > p.CycleBlocks {
		// Each batch has a block of its own, and may be of one entity.
		return fmt.Errorf("%d entities a cycle of %d blocks: want a cycle, and as many blocks as entities", p.Entities(), p.CycleBlocks)
	}
	if err := p.Batches.from(1); err != nil {
		return fmt.Errorf("batches: %w", err)
	}
	if p.Batches.high() > 1<<14 {
		return errors.New("batches: more than 16384 entities, which transactions may not be able to number")
	}
	for i := range p.Kinds {
		if err := p.validateKind(&p.Kinds[i]); err != nil {
			return fmt.Errorf("kind %q: %w", p.Kinds[i].Name, err)
		}
	}
	return nil
}

func (p *Profile) validateKind(k *Kind) error {
	if k.Count == 0 || k.Accounts.Count == 0 || len(k.Payload.Types) == 0 {
		return errors.New("it needs entities, accounts and content types")
	}
	if err := k.Runs.from(1); err != nil {
		return fmt.Errorf("runs: %w", err)
	}
	if err := k.Payload.Size.from(MinPayload); err != nil {
		return fmt.Errorf("payload size: %w", err)
	}
	if err := k.validateLife(); err != nil {
		return err
	}
	return p.validateAttributes(k)
}

// maxAttributes is how many of a type a shape has bits for.
const maxAttributes = 32

func (p *Profile) validateAttributes(k *Kind) error {
	if len(k.Texts) > maxAttributes || len(k.Numbers) > maxAttributes {
		return fmt.Errorf("more than %d attributes of a type", maxAttributes)
	}
	texts, numbers := map[string]bool{"type": true}, map[string]bool{}
	for _, t := range k.Texts {
		if texts[t.Name] {
			return fmt.Errorf("attribute %q is there twice", t.Name)
		}
		texts[t.Name] = true
		if err := p.validateText(k, t); err != nil {
			return fmt.Errorf("attribute %q: %w", t.Name, err)
		}
	}
	for _, n := range k.Numbers {
		if numbers[n.Name] {
			return fmt.Errorf("attribute %q is there twice", n.Name)
		}
		numbers[n.Name] = true
		if err := n.Values.from(0); n.Source == Drawn && err != nil {
			return fmt.Errorf("attribute %q: %w", n.Name, err)
		}
	}
	return nil
}

func (k *Kind) validateLife() error {
	f := k.Fate
	if f.Persistent+f.Ephemeral+f.Deleted == 0 || len(k.Steps) > MaxSteps {
		return fmt.Errorf("it needs a fate and at most %d steps", MaxSteps)
	}
	if err := f.Lifetime.from(1); f.Ephemeral > 0 && err != nil {
		return fmt.Errorf("lifetime: %w", err)
	}
	if err := f.DeletedAfter.from(1); f.Deleted > 0 && err != nil {
		return fmt.Errorf("deleted after: %w", err)
	}
	for i, s := range k.Steps {
		if err := s.After.from(1); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if s.Op != entity.Update && s.Op != entity.ExtendBTL && s.Op != entity.ChangeOwner {
			return fmt.Errorf("step %d: cannot be %s", i, s.Op)
		}
	}
	return nil
}

func (p *Profile) validateText(k *Kind, t Text) error {
	switch t.Source {
	case OneOf:
		if totalWeight(t.Values) == 0 || t.Later != nil && totalWeight(t.Later) == 0 {
			return errors.New("no values to choose from")
		}
	case Next:
		if k.serial() == nil {
			return errors.New("its kind has no serial attribute")
		}
	case Pooled:
		if t.Pool == 0 {
			return errors.New("the pool is empty")
		}
	case ID, Key:
		i := slices.IndexFunc(p.Kinds, func(k Kind) bool { return k.Name == t.Of })
		if i < 0 {
			return fmt.Errorf("no kind %q to refer to", t.Of)
		}
		of := &p.Kinds[i]
		if of.Fate.Ephemeral+of.Fate.Deleted > 0 {
			return fmt.Errorf("kind %q may have ended when it is referred to", t.Of)
		}
		if t.Source == ID && of.serial() == nil {
			return fmt.Errorf("kind %q has no serial attribute", t.Of)
		}
	}
	return nil
}

// serial returns the attribute that names an entity of the kind, or nil.
func (k *Kind) serial() *Text {
	for i := range k.Texts {
		if k.Texts[i].Source == Serial {
			return &k.Texts[i]
		}
	}
	return nil
}

// horizon returns how many blocks after its creation an entity may still be
// operated on.
func (k *Kind) horizon() uint64 {
	var steps, lifetimes uint64 = 0, 1
	for _, s := range k.Steps {
		steps += s.After.high()
		if s.Op == entity.ExtendBTL {
			lifetimes++
		}
	}
	if k.Fate.Ephemeral > 0 {
		steps = max(steps, lifetimes*k.Fate.Lifetime.high())
	}
	if k.Fate.Deleted > 0 {
		steps = max(steps, k.Fate.DeletedAfter.high())
	}
	return steps
}
