package cli

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/varvedb/varve/store/event"
)

// eventFilter is a query in flags: one item, and others in texts.
type eventFilter struct {
	Type []string `help:"Only events of this type; given again, of one of the types." sep:"none"`
	Tag  []string `help:"Only events with this tag, key:value; given again, with all of the tags." placeholder:"KEY:VALUE" sep:"none"`
	Or   []string `help:"Or events of one of these types with all of these tags, written as in a URL: type=A&type=B&tag=key:value; may be given again." placeholder:"ITEM" sep:"none"`
}

func (f *eventFilter) query() (q event.Query, err error) {
	if len(f.Type) > 0 || len(f.Tag) > 0 {
		q.Items = append(q.Items, event.Item{Types: f.Type})
		if q.Items[0].Tags, err = parseTags(f.Tag); err != nil {
			return q, err
		}
	}
	for _, text := range f.Or {
		item, err := parseItem(text)
		if err != nil {
			return q, err
		}
		q.Items = append(q.Items, item)
	}
	if err := q.Validate(); err != nil {
		return q, usageError{err}
	}
	return q, nil
}

// parseItem reads one alternative of a query.
func parseItem(text string) (item event.Item, err error) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return item, usageError{fmt.Errorf("item %q: %w", text, err)}
	}
	for name := range values {
		if name != "type" && name != "tag" {
			return item, usageError{fmt.Errorf("item %q: %q: want type=… and tag=key:value, with & between them", text, name)}
		}
	}
	item.Types = values["type"]
	item.Tags, err = parseTags(values["tag"])
	return item, err
}

func parseTags(texts []string) (tags []event.Tag, err error) {
	for _, text := range texts {
		key, value, ok := strings.Cut(text, ":")
		if !ok {
			return nil, usageError{fmt.Errorf("tag %q: want key:value", text)}
		}
		tags = append(tags, event.NewTag(key, value))
	}
	return tags, nil
}
