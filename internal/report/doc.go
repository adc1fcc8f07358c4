// Package report shows a result set: as one HTML page that needs no network, and
// as the Markdown tables of EXPERIMENTS.md. Both are rendered from the same
// tables, so that they cannot disagree, and depend on nothing but the records:
// the same result set gives the same bytes.
package report
