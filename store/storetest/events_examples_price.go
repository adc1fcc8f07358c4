package storetest

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/varvedb/varve/store/event"
)

// A product is sold at the price that was displayed: the current one, or with a
// period of grace also one that was replaced in it.

// prices are the prices at which a product may be sold.
type prices struct {
	before int   // the last price before the period of grace
	during []int // the prices in the period
}

func (p prices) include(price int) bool {
	return price == p.before || slices.Contains(p.during, price)
}

// pricesOf returns a projection of the prices of a product. The period of grace
// is the last grace minutes.
func pricesOf(product string, grace int) *event.Projection[prices] {
	return event.TryProjection(anyOf(item("ProductDefined|ProductPriceChanged", "product:"+product)), prices{},
		func(p prices, e *event.Sequenced) (prices, error) {
			n, err := strconv.Atoi(string(e.Data))
			if err != nil {
				return p, err
			}
			if within(grace, e) {
				return prices{before: p.before, during: append(slices.Clone(p.during), n)}, nil
			}
			return prices{before: n, during: p.during}, nil
		})
}

// offer is a product at the price that was displayed.
type offer struct {
	product string
	price   int
}

// order buys products, all or none, in one event.
func order(grace int, offers ...offer) command {
	return func(evs event.Store) error {
		valid := make([]*event.Projection[prices], len(offers))
		reads := make([]event.Projector, len(offers))
		text, tags := "", []string{}
		for i, o := range offers {
			valid[i] = pricesOf(o.product, grace)
			reads[i] = valid[i]
			text += fmt.Sprintf("%s=%d;", o.product, o.price)
			tags = append(tags, "product:"+o.product)
		}
		rule := func() error {
			for i, o := range offers {
				if !valid[i].State.include(o.price) {
					return fmt.Errorf("invalid price of %s", o.product)
				}
			}
			return nil
		}
		return decide(evs, rule, func() event.Event { return ev("ProductsOrdered", text, tags...) }, reads...)
	}
}

func priceExamples() []example {
	const none, grace = -1, 10 // minutes
	p1, p2 := ev("ProductDefined", "123", "product:p1"), ev("ProductDefined", "321", "product:p2")
	changed := ev("ProductPriceChanged", "134", "product:p1")
	sold := func(price int) string { return fmt.Sprintf("ProductsOrdered p1=%d; product:p1", price) }
	at := func(price int) offer { return offer{"p1", price} }
	const invalid = "invalid price of p1"
	old := []event.Event{ago(20, p1)}
	return []example{
		{"fixed: invalid", []event.Event{p1}, order(none, at(100)), "", invalid},
		{"fixed: valid", []event.Event{p1}, order(none, at(123)), sold(123), ""},

		{"changing: invalid", []event.Event{p1}, order(grace, at(100)), "", invalid},
		{"changing: valid", []event.Event{p1}, order(grace, at(123)), sold(123), ""},
		{"changing: never valid", old, order(grace, at(100)), "", invalid},
		{"changing: replaced long ago", append(old[:1:1], ago(20, changed)), order(grace, at(123)), "", invalid},
		{"changing: the first", old, order(grace, at(123)), sold(123), ""},
		{"changing: replaced just now", append(old[:1:1], ago(9, changed)), order(grace, at(123)), sold(123), ""},
		{"changing: the new one", append(old[:1:1], ago(9, changed)), order(grace, at(134)), sold(134), ""},

		// The published cases of orders with one product are the ones above.
		{"several: two products", append(old[:1:1], ago(9, changed), ago(8, p2)), order(grace, at(123), offer{"p2", 321}),
			"ProductsOrdered p1=123;p2=321; product:p1 product:p2", ""},

		// Not published.
		{"several: one of them invalid", append(old[:1:1], ago(8, p2)), order(grace, at(123), offer{"p2", 320}), "", "invalid price of p2"},
		{"another product", []event.Event{p2}, order(grace, at(321)), "", invalid},
	}
}
