// Package faulttest are the suites of tests that damage the stores of an engine
// (package fault) and take its resources away.
package faulttest
