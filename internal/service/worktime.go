package service

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// worktime bounds how long the store works for one request. The clock is
// stopped while the client receives the answer.
type worktime struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	begun  time.Time
	left   time.Duration
	err    error // when no time is left
}

// worktime returns the worktime of a request, with the clock stopped. The
// caller ends it.
func (s *Service) worktime(ctx context.Context) *worktime {
	w := &worktime{left: s.opts.Work, err: fmt.Errorf("%w: the store has worked for it for %s; ask for less at a time", ErrTime, s.opts.Work)}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(w.left, func() { w.cancel(w.err) })
	w.timer.Stop()
	return w
}

func (w *worktime) run() {
	w.begun = time.Now()
	w.timer.Reset(w.left)
}

func (w *worktime) stand() {
	if w.timer.Stop() {
		w.left -= time.Since(w.begun)
	}
}

func (w *worktime) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// errorOf returns the error of a read, or the time limit's if that ended the
// read.
func (w *worktime) errorOf(err error) error {
	if err != nil && errors.Is(context.Cause(w.ctx), ErrTime) {
		return w.err
	}
	return err
}
