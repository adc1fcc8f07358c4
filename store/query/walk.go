package query

// Walk calls visit for e and the nodes below it, parents before children and
// terms in order. Where visit returns false, Walk leaves out what is below.
func Walk(e Expr, visit func(Expr) bool) {
	if !visit(e) {
		return
	}
	switch e := e.(type) {
	case And:
		walkAll(e.Terms, visit)
	case Or:
		walkAll(e.Terms, visit)
	case Not:
		Walk(e.Term, visit)
	}
}

func walkAll(terms []Expr, visit func(Expr) bool) {
	for _, term := range terms {
		Walk(term, visit)
	}
}
