//go:build !linux

package pace

import "time"

// alarm is precise to a millisecond here.
type alarm struct{}

func newAlarm() (*alarm, error) { return &alarm{}, nil }

func (*alarm) nap(d time.Duration) { time.Sleep(d) }

func (*alarm) close() {}
