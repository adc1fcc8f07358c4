package rpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// entities implements EntityService.
type entities struct {
	varvev1.UnimplementedEntityServiceServer
	service *service.Service
}

func keyOf(b []byte) (key entity.Key, err error) {
	if len(b) != len(key) {
		return key, fmt.Errorf("%w: a key of %d bytes, want %d", service.ErrMalformed, len(b), len(key))
	}
	return entity.Key(b), nil
}

// Put implements EntityService.
func (s *entities) Put(ctx context.Context, r *varvev1.PutRequest) (*varvev1.PutResponse, error) {
	p, err := putOf(r)
	if err != nil {
		return nil, err
	}
	done, err := s.service.Put(ctx, p)
	if err != nil {
		return nil, err
	}
	return &varvev1.PutResponse{Block: done.Block, Created: done.Created, Expiration: done.Expiration, Replaced: done.Replaced}, nil
}

// putOf converts a request into a write.
func putOf(r *varvev1.PutRequest) (*service.Put, error) {
	key, err := keyOf(r.GetKey())
	if err != nil {
		return nil, err
	}
	p := &service.Put{
		Key: key, ContentType: r.GetContentType(), Payload: r.GetPayload(),
		StringAttributes: r.GetStringAttributes(), NumericAttributes: r.GetNumericAttributes(), Lifetime: r.Lifetime,
		When: guardOf(r.GetGuard()),
	}
	if r.Owner == nil {
		return p, nil
	}
	if len(r.GetOwner()) != len(entity.Address{}) {
		return nil, fmt.Errorf("%w: an owner of %d bytes, want %d", store.ErrInvalid, len(r.GetOwner()), len(entity.Address{}))
	}
	owner := entity.Address(r.GetOwner())
	p.Owner = &owner
	return p, nil
}

// guardOf converts the condition on the entity before a write.
func guardOf(m *varvev1.Guard) (g service.Guard) {
	some := &service.Versions{Any: true}
	switch {
	case m == nil || m.Exists == nil:
	case m.GetExists():
		g.Match = some
	default:
		g.NoneMatch = some
	}
	if list := m.GetLastModifiedAtBlock(); len(list) > 0 {
		g.Match = &service.Versions{List: list}
	}
	return g
}

// Get implements EntityService.
func (s *entities) Get(ctx context.Context, r *varvev1.GetRequest) (*varvev1.GetResponse, error) {
	key, err := keyOf(r.GetKey())
	if err != nil {
		return nil, err
	}
	e, err := s.service.Get(ctx, key, holdOf(ctx))
	if err != nil {
		return nil, err
	}
	return &varvev1.GetResponse{Entity: messageOf(e)}, nil
}

// messageOf converts an entity into a message that shares its memory.
func messageOf(e *entity.Entity) *varvev1.Entity {
	return &varvev1.Entity{
		Key: e.Key[:], Owner: e.Owner[:], Creator: e.Creator[:], ContentType: e.ContentType, Payload: e.Content,
		StringAttributes: e.StringAttributes, NumericAttributes: e.NumericAttributes,
		Sequence: e.Sequence, LastModifiedAtBlock: e.LastModifiedAtBlock, Expiration: e.Expiration,
	}
}

// Delete implements EntityService.
func (s *entities) Delete(ctx context.Context, r *varvev1.DeleteRequest) (*varvev1.DeleteResponse, error) {
	key, err := keyOf(r.GetKey())
	if err != nil {
		return nil, err
	}
	done, err := s.service.Delete(ctx, key, guardOf(r.GetGuard()))
	if err != nil {
		return nil, err
	}
	return &varvev1.DeleteResponse{Block: done.Block}, nil
}

// Query implements EntityService.
func (s *entities) Query(r *varvev1.QueryRequest, stream grpc.ServerStreamingServer[varvev1.QueryResponse]) error {
	q, err := queryOf(r)
	if err != nil {
		return err
	}
	page, err := s.service.Query(stream.Context(), q, holdOf(stream.Context()), func(e *entity.Entity) error {
		return stream.Send(&varvev1.QueryResponse{Part: &varvev1.QueryResponse_Entity{Entity: messageOf(e)}})
	})
	if err != nil {
		return err
	}
	return stream.Send(&varvev1.QueryResponse{Part: &varvev1.QueryResponse_Page{
		Page: &varvev1.Page{Count: uint64(page.Count), Block: page.Block, Cursor: string(page.Cursor)},
	}})
}

func queryOf(r *varvev1.QueryRequest) (*service.Query, error) {
	q := &service.Query{Text: r.GetQuery(), Limit: int(r.GetLimit()), Cursor: store.Cursor(r.GetCursor()), Block: r.Block}
	for _, column := range r.GetOrder() {
		o := store.Order{Name: column.GetName(), Desc: column.GetDescending()}
		switch column.GetKind() {
		case varvev1.Order_KIND_UNSPECIFIED:
		case varvev1.Order_KIND_STRING:
			o.Kind = entity.String
		case varvev1.Order_KIND_NUMERIC:
			o.Kind = entity.Numeric
		default:
			return nil, errors.Join(store.ErrInvalid, fmt.Errorf("order of kind %d", column.GetKind()))
		}
		q.Order = append(q.Order, o)
	}
	return q, nil
}
