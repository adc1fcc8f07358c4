package driver

import "context"

// Listener is implemented by engines of which another process's commit can be heard.
type Listener interface {
	// Listen begins to hear. It fails with ErrUnsupported where nothing can be heard, such
	// as through a pooler. The caller closes it before the engine.
	Listen(ctx context.Context) (Listening, error)

	// Announcement returns the statement by which a write transaction has its commit wake
	// the listeners of this database in other processes; "" where every commit does.
	Announcement() string
}

// Listening hears the announced commits of other processes. It is not safe for concurrent
// use.
type Listening interface {
	// Wait returns after the next one, or with ctx's error, or when the connection is
	// lost: whoever listens again has to look for what came between. The caller then
	// closes it.
	Wait(ctx context.Context) error
	Close() error
}
