package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store/entity"
)

// Found is an entity as a client sees it, and the body of a put over REST.
type Found struct {
	ContentType string            `json:"content_type"`
	Payload     []byte            `json:"payload"`
	Strings     map[string]string `json:"string_attributes,omitempty"`
	Numbers     map[string]uint64 `json:"numeric_attributes,omitempty"`
}

// Client puts and gets entities over one protocol. It may be used from several
// goroutines.
type Client struct {
	Put   func(ctx context.Context, p *service.Put) (created bool, err error)
	Get   func(ctx context.Context, key entity.Key) (Found, error)
	Close func() error
}

// Local returns a client in the service's process.
func Local(s *service.Service) Client {
	return Client{
		Put: func(ctx context.Context, p *service.Put) (bool, error) {
			done, err := s.Put(ctx, p)
			return done.Created, err
		},
		Get: func(ctx context.Context, key entity.Key) (Found, error) {
			e, err := s.Get(ctx, key, nil)
			if err != nil {
				return Found{}, err
			}
			return Found{e.ContentType, e.Content, e.StringAttributes, e.NumericAttributes}, nil
		},
		Close: func() error { return nil },
	}
}

// rest is a client over kept HTTP connections.
type rest struct {
	http.Client
	base string
}

// REST returns a client of the service at an address, which keeps up to one
// connection for each goroutine.
func REST(address string, goroutines int) Client {
	transport := &http.Transport{MaxIdleConns: goroutines, MaxIdleConnsPerHost: goroutines, DisableCompression: true}
	c := &rest{http.Client{Transport: transport}, "http://" + address + "/v1/entities/"}
	return Client{
		Put: func(ctx context.Context, p *service.Put) (bool, error) {
			body, err := json.Marshal(Found{p.ContentType, p.Payload, p.StringAttributes, p.NumericAttributes})
			if err != nil {
				return false, err
			}
			var done struct {
				Created bool `json:"created"`
			}
			err = c.do(ctx, http.MethodPut, p.Key, body, &done)
			return done.Created, err
		},
		Get: func(ctx context.Context, key entity.Key) (found Found, err error) {
			err = c.do(ctx, http.MethodGet, key, nil, &found)
			return found, err
		},
		Close: func() error {
			c.CloseIdleConnections()
			return nil
		},
	}
}

func (c *rest) do(ctx context.Context, method string, key entity.Key, body []byte, answer any) (err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+key.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	text := make([]byte, max(resp.ContentLength, 0))
	if _, err := io.ReadFull(resp.Body, text); err != nil {
		return fmt.Errorf("%s %s: %w", method, key, err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("%s %s: %s: %s", method, key, resp.Status, text)
	}
	return json.Unmarshal(text, answer)
}

// GRPC returns a client of the service at an address, on one connection.
func GRPC(address string) (Client, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return Client{}, err
	}
	entities := varvev1.NewEntityServiceClient(conn)
	return Client{
		Put: func(ctx context.Context, p *service.Put) (bool, error) {
			done, err := entities.Put(ctx, &varvev1.PutRequest{
				Key: p.Key[:], ContentType: p.ContentType, Payload: p.Payload,
				StringAttributes: p.StringAttributes, NumericAttributes: p.NumericAttributes,
			})
			return done.GetCreated(), err
		},
		Get: func(ctx context.Context, key entity.Key) (Found, error) {
			resp, err := entities.Get(ctx, &varvev1.GetRequest{Key: key[:]})
			e := resp.GetEntity()
			return Found{e.GetContentType(), e.GetPayload(), e.GetStringAttributes(), e.GetNumericAttributes()}, err
		},
		Close: conn.Close,
	}, nil
}
