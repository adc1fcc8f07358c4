package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/varvedb/varve/internal/accesslog"
	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// Put is a write of an entity: it creates the entity, or replaces its contents.
// The service retains the maps and the payload, so the caller must not change
// them.
type Put struct {
	Key         entity.Key
	ContentType string
	Payload     []byte

	StringAttributes  map[string]string
	NumericAttributes map[string]uint64

	// Lifetime is in blocks, counted from the block of the write; nil means for
	// ever.
	Lifetime *uint64

	// Owner is the entity's owner from now on. Nil keeps the owner of an
	// existing entity, and gives a new one Options.Owner.
	Owner *entity.Address

	// When is a condition on the entity before the write.
	When Guard
}

// Written is the result of a write.
type Written struct {
	Block      uint64 // that holds it
	Created    bool   // by a put of an entity that did not exist
	Expiration uint64 // of a put entity: the first block at which it is gone
	Replaced   bool   // a later write in the same block has replaced it
}

// Put creates or replaces an entity and returns once that is committed, with
// the durability of the store. It fails with store.ErrInvalid, ErrTooLarge,
// ErrChanged, ErrClosing, or as store.Entities.Apply does.
func (s *Service) Put(ctx context.Context, p *Put) (Written, error) {
	if err := s.checkPut(p); err != nil {
		return Written{}, fmt.Errorf("put %s: %w", p.Key, err)
	}
	w := newWrite(ctx)
	w.op = entity.Op{
		Kind: entity.Create, Key: p.Key, BTL: entity.MaxBlock, ContentType: p.ContentType,
		StringAttributes: p.StringAttributes, NumericAttributes: p.NumericAttributes,
	}
	if p.Lifetime != nil {
		w.op.BTL = *p.Lifetime
	}
	w.owner, w.payload, w.when = p.Owner, p.Payload, p.When
	// Make the checks that need no store here, concurrently with the writer.
	alone := entity.Block{Ops: []entity.Op{w.op}}
	if err := alone.Validate(); err != nil {
		return Written{}, fmt.Errorf("put %s: %w", p.Key, withoutPlace(err))
	}
	w.op.Content = s.seal(p.Key, p.Payload)
	done, err := s.submit(w)
	if err != nil {
		return Written{}, fmt.Errorf("put %s: %w", p.Key, err)
	}
	return done, nil
}

// Delete ends an entity and returns once that is committed. It fails with
// store.ErrNotFound, ErrChanged, ErrClosing, or as store.Entities.Apply does.
func (s *Service) Delete(ctx context.Context, key entity.Key, when Guard) (Written, error) {
	w := newWrite(ctx)
	w.when = when
	w.op = entity.Op{Kind: entity.Delete, Key: key}
	done, err := s.submit(w)
	if err != nil {
		return Written{}, fmt.Errorf("delete %s: %w", key, err)
	}
	return done, nil
}

// Get returns an entity as of the head, with its payload decrypted. It reserves
// the memory of the answer in hold; a nil hold does not count. While it waits
// for memory it holds nothing else. The entity is shared with the cache, so the
// caller must not change it. It fails with store.ErrNotFound, or as
// seal.Keyring.Open and quota.Hold.Take do.
func (s *Service) Get(ctx context.Context, key entity.Key, hold *quota.Hold) (*entity.Entity, error) {
	for {
		e, err := s.get(ctx, key)
		if err != nil {
			return nil, err
		}
		wants := answerBytes(e)
		if hold.Try(wants) {
			return e, nil
		}
		if err := hold.Take(ctx, wants); err != nil {
			return nil, fmt.Errorf("get %s: %w", key, err)
		}
	}
}

func (s *Service) get(ctx context.Context, key entity.Key) (*entity.Entity, error) {
	e, ok := s.cache.get(key)
	accesslog.Add(ctx, slog.Bool("cached", ok))
	if ok {
		if e.Expiration <= s.head.block.Load() {
			return nil, fmt.Errorf("get %s: %w", key, store.ErrNotFound)
		}
		return e, nil
	}
	epoch := s.cache.epoch(key)
	snap, err := s.at(ctx, store.Head, key)
	if err != nil {
		return nil, err
	}
	e, err = snap.Get(ctx, key)
	if err = errors.Join(err, snap.Close()); err != nil {
		return nil, err
	}
	if e.Content, err = unseal(s.keys.Load(), key, e.Content); err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	s.cache.offer(e, epoch)
	return e, nil
}

// checkPut refuses a payload that a reader would later take for a sealed one,
// and an entity that is too large.
func (s *Service) checkPut(p *Put) error {
	if p.Lifetime != nil && *p.Lifetime == 0 {
		return fmt.Errorf("%w: a lifetime of no blocks; leave it out for an entity that stays", store.ErrInvalid)
	}
	if len(p.Payload) > s.opts.MaxPayload {
		return fmt.Errorf("%w: a payload of %d bytes, at most %d", ErrTooLarge, len(p.Payload), s.opts.MaxPayload)
	}
	if !IsContentType(p.ContentType) {
		return fmt.Errorf("%w: a content type has at most %d printable characters of ASCII, got %.40q", store.ErrInvalid, maxContentType, p.ContentType)
	}
	size := messageOverhead + len(p.ContentType)
	for name, value := range p.StringAttributes {
		size += attributeOverhead + len(name) + len(value)
	}
	for name := range p.NumericAttributes {
		size += attributeOverhead + len(name)
	}
	if size > envelope {
		return fmt.Errorf("%w: %d bytes without the payload, at most %d: shorten names and values of attributes", ErrTooLarge, size, envelope)
	}
	if !s.Sealed() && seal.IsSealed(p.Payload) {
		return fmt.Errorf("%w: the payload begins like a sealed one, and this service has no keys", store.ErrInvalid)
	}
	return nil
}

// maxContentType is the maximum length of a content type in bytes. A media type
// may have 127 for each of its two names, and few have a parameter.
const maxContentType = 256

// IsContentType reports whether a text can be sent as the header Content-Type.
func IsContentType(text string) bool {
	return len(text) <= maxContentType && strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// The maximum overhead of a gRPC message besides payload, texts and names:
// keys, addresses and numbers; and for each attribute or tag its number or
// lengths.
const (
	messageOverhead   = 256
	attributeOverhead = 24
)

// checkMessage refuses an event that would be too large as a gRPC message.
func (s *Service) checkMessage(size int) error {
	if most := s.MaxMessage(); size > most {
		return fmt.Errorf("%w: with its tags a message of %d bytes, at most %d; store the content elsewhere and keep a reference", ErrTooLarge, size, most)
	}
	return nil
}

func (s *Service) seal(key entity.Key, payload []byte) []byte {
	keys := s.keys.Load()
	if keys == nil {
		return payload
	}
	s.metrics.sealed.Inc()
	return keys.Seal(key[:], payload)
}

// unseal decrypts a stored payload. Without keys, a sealed payload is an error.
// With keys, an unsealed payload is an error, because otherwise anyone who can
// write to the store could insert payloads.
func unseal(keys *seal.Keyring, key entity.Key, stored []byte) ([]byte, error) {
	if keys != nil {
		return keys.Open(key[:], stored)
	}
	if seal.IsSealed(stored) {
		return nil, fmt.Errorf("%w: the service was started without keys", seal.ErrUnknownKey)
	}
	return stored, nil
}
