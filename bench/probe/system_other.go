//go:build !linux

package probe

import "os"

func mincore(*os.File, int64) (Pages, error) { return Pages{}, ErrUnsupported }

func dontNeed(*os.File) error { return ErrUnsupported }
