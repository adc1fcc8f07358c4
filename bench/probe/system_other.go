//go:build !linux

package probe

import (
	"os"
	"time"
)

func mincore(*os.File, int64) (Pages, error) { return Pages{}, ErrUnsupported }

func dontNeed(*os.File) error { return ErrUnsupported }

func uptime() (time.Duration, error) { return 0, ErrUnsupported }

func processes([]int) (map[int]process, error) { return nil, ErrUnsupported }

func memory([]int) (int64, error) { return 0, ErrUnsupported }
