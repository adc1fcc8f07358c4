# Shortcuts; every line also works when typed by hand.

.PHONY: build test race lint rules fmt bench smoke fuzz ci

build:
	go build ./...

test:
	go test ./...

# The race detector over all that runs goroutines beside each other. .ci/run does it for
# SQLite.
race:
	go test -race -short -timeout=30m ./store/... ./internal/layout/... ./internal/eventlog/... ./internal/service/...

# The linter is a tool of internal/tools, so that importers of Varve do not
# inherit its dependencies.
lint: rules
	go tool -modfile=internal/tools/go.mod golangci-lint run ./...

# -count=1: the test cache does not see new imports.
rules:
	go test -count=1 ./internal/lint

fmt:
	gofmt -w .

# The core set, as in README.
bench:
	go test -run='^$$' -bench=. -benchtime=0.5s -count=6 ./bench/... | tee new.txt
	go tool benchstat -col /engine -row '.name /layout /mix /clients' -ignore pkg new.txt

# Each benchmark once, on each engine, and each experiment, to see that it works.
smoke:
	go test -run='^$$' -bench=. -benchtime=1x -short ./bench/...
	go test -run=TestExperiments -bench=. -benchtime=1x -short ./bench/sqlite ./bench/sqlitego ./bench/libsql ./bench/duckdb ./bench/postgres -varve.all

# Every fuzz target for a while. Go minimises an input for a minute unless told
# otherwise, and does nothing else where coverage varies by itself (zstd).
FUZZTIME ?= 1m
fuzz:
	@grep -rlE '^func Fuzz' --include='*_test.go' . | sort | while read -r file; do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' "$$file"); do \
			echo "$$(dirname "$$file") $$name"; \
			go test -run='^$$' -fuzz="^$$name$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=10x "$$(dirname "$$file")" || exit 1; \
		done; \
	done

# What runs before a change is merged.
ci:
	.ci/run
