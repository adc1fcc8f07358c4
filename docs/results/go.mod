module github.com/varvedb/varve/docs/results

go 1.26
