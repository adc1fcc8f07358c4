package rebac

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store/driver"
)

// Client asks questions in one read view, which it keeps open. It is not safe for
// concurrent use.
type Client struct {
	store   *Store
	closure Closure
	snap    driver.Reader
	args    []any // scratch
	id      int64
	dest    []any // &id
}

// Client opens a read view. The caller closes the client.
func (s *Store) Client(ctx context.Context, c Closure) (*Client, error) {
	snap, err := s.db.Engine().Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("permission client: %w", err)
	}
	client := &Client{store: s, closure: c, snap: snap}
	client.dest = []any{&client.id}
	if err := client.begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("permission client: %w", err), snap.Close())
	}
	return client, nil
}

// begin runs what the dialect wants done in a new read view, if anything.
func (c *Client) begin(ctx context.Context) error {
	text, ok := c.store.schema.Statements["begin_read"]
	if !ok {
		return nil
	}
	rows, err := c.snap.Query(ctx, text)
	if err != nil {
		return err
	}
	rows.Next()
	return join(rows.Err(), rows.Close())
}

// Close ends the read view.
func (c *Client) Close() error { return c.snap.Close() }

// Check tells whether a user may.
func (c *Client) Check(ctx context.Context, p Permission, user, resource int) (bool, error) {
	st := c.store.calls[call{Check, p, c.closure}]
	u, r := any(int64(user)), any(int64(resource))
	return c.check(ctx, st, u, r)
}

func (c *Client) check(ctx context.Context, st *statement, user, resource any) (bool, error) {
	c.args = c.args[:0]
	for range st.args / 2 {
		c.args = append(c.args, resource, user)
	}
	rows, err := c.snap.Query(ctx, st.text, c.args...)
	if err != nil {
		return false, err
	}
	may := rows.Next()
	return may, join(rows.Err(), rows.Close())
}

// Resources calls f for each resource for which a user may.
func (c *Client) Resources(ctx context.Context, p Permission, user int, f func(resource int64)) error {
	return c.list(ctx, c.store.calls[call{ListResources, p, c.closure}], any(int64(user)), f)
}

// Users calls f for each user who may.
func (c *Client) Users(ctx context.Context, p Permission, resource int, f func(user int64)) error {
	return c.list(ctx, c.store.calls[call{ListUsers, p, c.closure}], any(int64(resource)), f)
}

func (c *Client) list(ctx context.Context, st *statement, of any, f func(id int64)) error {
	c.args = c.args[:0]
	for range st.args {
		c.args = append(c.args, of)
	}
	rows, err := c.snap.Query(ctx, st.text, c.args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err = rows.Scan(c.dest...); err != nil {
			break
		}
		f(c.id)
	}
	return join(err, rows.Err(), rows.Close())
}

// join is errors.Join, without its allocation when all is well.
func join(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return errors.Join(errs...)
		}
	}
	return nil
}

// asker asks the questions of a scenario.
type asker struct {
	client   *Client
	scenario *Scenario
	st       *statement
	args     [][2]any // user and resource of each question, as arguments
	got      Answer
	take     func(id int64)
}

func (c *Client) asker(s *Scenario) *asker {
	a := &asker{client: c, scenario: s, st: c.store.calls[call{s.Kind, s.Permission, c.closure}]}
	for _, q := range s.Questions {
		a.args = append(a.args, [2]any{int64(q.User), int64(q.Resource)})
	}
	a.take = func(id int64) { a.got.add(id) }
	return a
}

// ask asks question i and compares the answer: ErrMismatch when it is another.
func (a *asker) ask(ctx context.Context, i int) (err error) {
	a.got = Answer{}
	switch of := &a.args[i]; a.scenario.Kind {
	case Check:
		var may bool
		if may, err = a.client.check(ctx, a.st, of[0], of[1]); may {
			a.got.add(1)
		}
	case ListResources:
		err = a.client.list(ctx, a.st, of[0], a.take)
	case ListUsers:
		err = a.client.list(ctx, a.st, of[1], a.take)
	}
	if want := a.scenario.Questions[i].Want; err == nil && a.got != want {
		return a.mismatch(i)
	}
	return err
}

func (a *asker) mismatch(i int) error {
	q := a.scenario.Questions[i]
	return fmt.Errorf("%w: %s with closure %s, user %d, resource %d: %d found, want %d (or others)",
		bench.ErrMismatch, a.scenario.Name, a.client.closure, q.User, q.Resource, a.got.Count, q.Want.Count)
}
