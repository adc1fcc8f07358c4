package cli

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// Numbers on the command line have bounds, as tags of their fields: min and max, or above,
// which is no bound itself. One of zero that means "no limit" says so in its help. A number
// that may be any, such as a position or a seed, has the tag any.

// checkBounds refuses the numbers of a command line that are out of bounds.
func checkBounds(parsed *kong.Context) error {
	for _, flag := range parsed.Flags() {
		if err := inBounds("--"+flag.Name, flag.Value); err != nil {
			return err
		}
	}
	if node := parsed.Selected(); node != nil {
		for _, value := range node.Positional {
			if err := inBounds(value.Summary(), value); err != nil {
				return err
			}
		}
	}
	return nil
}

func inBounds(name string, value *kong.Value) error {
	if !value.Tag.Has("min") && !value.Tag.Has("max") && !value.Tag.Has("above") {
		return nil
	}
	target := value.Target
	if target.Kind() == reflect.Pointer {
		if target.IsNil() {
			return nil
		}
		target = target.Elem()
	}
	if target.Kind() != reflect.Slice {
		return inBound(name, value.Tag, target)
	}
	for i := range target.Len() {
		if err := inBound(name, value.Tag, target.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func inBound(name string, tag *kong.Tag, target reflect.Value) error {
	n, ok := number(target)
	low, above, high := bound(tag, "min", math.Inf(-1)), bound(tag, "above", math.Inf(-1)), bound(tag, "max", math.Inf(1))
	if !ok || n >= low && n > above && n <= high {
		return nil
	}
	text := "from " + tag.Get("min")
	if tag.Has("above") {
		text = "above " + tag.Get("above")
	}
	if tag.Has("max") {
		text += " to " + tag.Get("max")
	}
	return fmt.Errorf("%s: want %s, got %v", name, text, target.Interface())
}

// bound reads a bound, a number or a duration.
func bound(tag *kong.Tag, name string, none float64) float64 {
	text := cmp.Or(tag.Get(name), strconv.FormatFloat(none, 'g', -1, 64))
	if d, err := time.ParseDuration(text); err == nil {
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n // 0 is both
		}
		return float64(d)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("bound %s:%q is no number", name, text))
	}
	return n
}

func number(v reflect.Value) (n float64, ok bool) {
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true // NaN is within nothing
	}
	return 0, false
}
