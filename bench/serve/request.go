package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"strconv"
	"sync/atomic"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store/entity"
)

// PayloadBytes is the size of a payload.
const PayloadBytes = 256

const contentType = "application/octet-stream"

// Key returns the key of entity n.
func Key(n int) entity.Key {
	return entity.Key(sha256.Sum256(binary.BigEndian.AppendUint64([]byte("serve"), uint64(n))))
}

// Put returns version v of entity n: 256 bytes that differ between versions,
// three string attributes and two numeric ones. A get must return the same.
func Put(n, v int) *service.Put {
	block := sha256.Sum256(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(n)), uint64(v)))
	return &service.Put{
		Key: Key(n), ContentType: contentType, Payload: bytes.Repeat(block[:], PayloadBytes/len(block)),
		StringAttributes: map[string]string{
			"type": "record", "name": "entity " + strconv.Itoa(n), "state": []string{"new", "open", "done"}[v%3],
		},
		NumericAttributes: map[string]uint64{"number": uint64(n), "version": uint64(v)},
	}
}

// check compares a found entity with its put.
func check(found Found, p *service.Put) error {
	if found.ContentType == p.ContentType && bytes.Equal(found.Payload, p.Payload) &&
		maps.Equal(found.Strings, p.StringAttributes) && maps.Equal(found.Numbers, p.NumericAttributes) {
		return nil
	}
	return fmt.Errorf("%w: entity %s: found %+v, want %+v", bench.ErrMismatch, p.Key, found, p)
}

// Load puts version 0 of the entities 0 to n-1, from several goroutines.
func Load(ctx context.Context, c Client, n int) error {
	_, err := pace.Loop(ctx, pace.Config{Workers: Clients, N: int64(n)}, func(ctx context.Context, s *pace.Step) error {
		_, err := c.Put(ctx, Put(int(s.N), 0))
		return err
	})
	return err
}

// Requests generates the requests of the workloads. It remembers the version of
// each entity, so that every answer is known.
type Requests struct {
	Client   Client
	Entities int // that are loaded

	versions []atomic.Int64
	next     atomic.Int64 // entity that does not exist
}

// NewRequests returns the requests to a service with n loaded entities.
func NewRequests(c Client, n int) *Requests {
	r := &Requests{Client: c, Entities: n, versions: make([]atomic.Int64, n)}
	r.next.Store(int64(n))
	return r
}

// Loop runs requests of one kind. No two workers use the same entity if the
// number of entities is a multiple of the number of workers.
func (r *Requests) Loop(ctx context.Context, cfg pace.Config, request func(r *Requests, ctx context.Context, i int) error) (*pace.Outcome, error) {
	next := make([]int, cfg.Workers)
	return pace.Loop(ctx, cfg, func(ctx context.Context, s *pace.Step) error {
		i := next[s.Worker]*cfg.Workers + s.Worker
		next[s.Worker]++
		return request(r, ctx, i)
	})
}

// Update puts the next version of a loaded entity and checks that the entity
// existed. No two goroutines may update the same entity at once.
func (r *Requests) Update(ctx context.Context, i int) error {
	n := i % r.Entities
	return r.put(ctx, Put(n, int(r.versions[n].Add(1))), false)
}

// Create puts an entity that does not exist and checks that it is new.
func (r *Requests) Create(ctx context.Context, _ int) error {
	return r.put(ctx, Put(int(r.next.Add(1)), 0), true)
}

func (r *Requests) put(ctx context.Context, p *service.Put, isNew bool) error {
	created, err := r.Client.Put(ctx, p)
	if err == nil && created != isNew {
		err = fmt.Errorf("%w: entity %s was created by a put: %t, want %t", bench.ErrMismatch, p.Key, created, isNew)
	}
	return err
}

// Get gets a loaded entity and compares all of it.
func (r *Requests) Get(ctx context.Context, i int) error {
	n := i % r.Entities
	found, err := r.Client.Get(ctx, Key(n))
	if err != nil {
		return err
	}
	return check(found, Put(n, int(r.versions[n].Load())))
}

// PutGet puts the next version of an entity and gets it.
func (r *Requests) PutGet(ctx context.Context, i int) error {
	if err := r.Update(ctx, i); err != nil {
		return err
	}
	return r.Get(ctx, i)
}
