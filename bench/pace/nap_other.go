//go:build !linux

package pace

import "time"

func nap(d time.Duration) { time.Sleep(d) }
