package social

import (
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// sequence reads a list that is not empty.
func sequence(n *yaml.Node, what string, each field) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return at(n, "%s: want a list of at least one", what)
	}
	for _, item := range n.Content {
		if err := each(item); err != nil {
			return err
		}
	}
	return nil
}

// scalar returns the text of a node.
func scalar(n *yaml.Node, what string) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		return "", at(n, "%s: want a value", what)
	}
	return n.Value, nil
}

func word(what string, to *string, good func(string) bool, want string) field {
	return func(n *yaml.Node) error {
		v, err := scalar(n, what)
		if err == nil && !good(v) {
			err = at(n, "%s: %q: want %s", what, v, want)
		}
		*to = v
		return err
	}
}

// number reads one above 0 and at most limit; "10%" is 0.1.
func number(what string, to *float64, limit float64) field {
	return func(n *yaml.Node) error {
		text, err := scalar(n, what)
		if err != nil {
			return err
		}
		percent, isPercent := strings.CutSuffix(text, "%")
		v, err := strconv.ParseFloat(percent, 64)
		if isPercent {
			v /= 100
		}
		if err != nil || !(v > 0) || v > limit || math.IsInf(v, 0) {
			return at(n, "%s: %q: want a number above 0, at most %v", what, text, limit)
		}
		*to = v
		return nil
	}
}

func whole(what string, to *int, limit int) field {
	return func(n *yaml.Node) error {
		text, err := scalar(n, what)
		if err != nil {
			return err
		}
		v, err := strconv.Atoi(text)
		if err != nil || v < 1 || v > limit {
			return at(n, "%s: %q: want a whole number from 1 to %d", what, text, limit)
		}
		*to = v
		return nil
	}
}

func duration(what string, to *time.Duration, least time.Duration) field {
	return func(n *yaml.Node) error {
		text, err := scalar(n, what)
		if err != nil {
			return err
		}
		v, err := time.ParseDuration(text)
		if err != nil || v < least || v > maxDuration {
			return at(n, "%s: %q: want a duration such as 10s, from %s to %s", what, text, least, maxDuration)
		}
		*to = v
		return nil
	}
}
