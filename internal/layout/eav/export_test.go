package eav

// CompileQuery is the statement of a request, for tests that look at its plan.
var CompileQuery = (*Layout).compileQuery
