# The commands of the README. Each works on an empty clone; the work is done in scripts/.
.PHONY: demo demo-lake test lint interleavings bench

demo: ## Build the program and the flights project, and ask it a question.
	@scripts/demo

demo-lake: ## Play the lake project: a bucket, a database and a web server on loopback.
	@scripts/demo-lake

test: ## Run all tests.
	@scripts/test

lint: ## Check formatting and lints.
	@scripts/lint

interleavings: ## Let a checker decide every switch of the controller's threads.
	@scripts/interleavings

bench: ## Run the benchmarks; one JSON object a line.
	@scripts/fetch-duckdb
	@cargo bench --package watershed-tests --bench controller -- --json
	@cargo bench --package watershed-tests --bench builds -- --json
	@cargo bench --package watershed-tests --bench compilers -- --json
	@cargo bench --package watershed-tests --bench service -- --json
	@cargo bench --package watershed-tests --bench stategraph -- --json
	@cargo bench --package watershed-tests --bench workloads -- --json
