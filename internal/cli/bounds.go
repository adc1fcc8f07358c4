package cli

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// Numeric flags and arguments have bounds, as struct tags: min and max, or
// above, which excludes the bound. Where zero means "no limit", the help of the
// flag says so. A number without bounds, such as a position or a seed, has the
// tag any.

// checkBounds refuses the numbers of a command line that are out of bounds.
func checkBounds(parsed *kong.Context) error {
	for _, flag := range parsed.Flags() {
		if err := inBounds("--"+flag.Name, flag.Value.Tag, flag.Target); err != nil {
			return err
		}
	}
	if node := parsed.Selected(); node != nil {
		for _, value := range node.Positional {
			if err := inBounds(value.Summary(), value.Tag, value.Target); err != nil {
				return err
			}
		}
	}
	return nil
}

func inBounds(name string, tag *kong.Tag, target reflect.Value) error {
	switch target.Kind() {
	case reflect.Pointer:
		if target.IsNil() {
			return nil
		}
		return inBounds(name, tag, target.Elem())
	case reflect.Slice:
		for i := range target.Len() {
			if err := inBounds(name, tag, target.Index(i)); err != nil {
				return err
			}
		}
		return nil
	}
	n, ok := number(target)
	low, above, high := bound(tag, "min", math.Inf(-1)), bound(tag, "above", math.Inf(-1)), bound(tag, "max", math.Inf(1))
	if !ok || n >= low && n > above && n <= high { // NaN is within nothing
		return nil
	}
	text := "from " + tag.Get("min")
	if tag.Has("above") {
		text = "above " + tag.Get("above")
	}
	return fmt.Errorf("%s: want %s to %s, got %v", name, text, tag.Get("max"), target.Interface())
}

// bound parses a bound, which is a number or a duration.
func bound(tag *kong.Tag, name string, none float64) float64 {
	if !tag.Has(name) {
		return none
	}
	if n, err := strconv.ParseFloat(tag.Get(name), 64); err == nil {
		return n
	}
	d, err := time.ParseDuration(tag.Get(name))
	if err != nil {
		panic(fmt.Sprintf("bound %s:%q is no number", name, tag.Get(name)))
	}
	return float64(d)
}

func number(v reflect.Value) (n float64, ok bool) {
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}
