package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
)

// reloads rereads keys, token and certificate at every SIGHUP, until it is
// stopped.
func (c *serveCmd) reloads(ctx context.Context, s *service.Service, srv *server.Server, log *slog.Logger) (stop func()) {
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	rereadsSecrets.Store(true)
	var done sync.WaitGroup
	done.Go(func() {
		for range hangUp {
			if err := c.reload(ctx, s, srv); err != nil {
				log.Error("reload failed, nothing was changed", "error", err)
				continue
			}
			log.Info("reloaded keys, token and certificate")
		}
	})
	return func() {
		rereadsSecrets.Store(false)
		signal.Stop(hangUp)
		close(hangUp)
		done.Wait()
	}
}

// reload replaces all of them, or none if one is invalid.
func (c *serveCmd) reload(ctx context.Context, s *service.Service, srv *server.Server) error {
	certificate, err := c.certificate()
	if err != nil {
		return err
	}
	keys, err := c.keys()
	if err != nil {
		return err
	}
	token, err := secret(c.TokenFile, tokenVariable)
	if err != nil {
		return err
	}
	if _, err := service.NewGate(service.GateOptions{Token: token}); err != nil {
		return err
	}
	if (token == "") != (c.token == "") {
		return errors.New("a token can be changed, but not added or removed while the service runs; restart it")
	}
	if keys != nil {
		if err := s.SetKeys(ctx, keys); err != nil {
			return fmt.Errorf("keys: %w", err)
		}
	}
	if token != "" {
		if err := srv.SetToken(token); err != nil {
			return err
		}
	}
	if certificate != nil {
		c.current.Store(certificate)
	}
	return nil
}
