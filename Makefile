# The commands of the README. Each works on an empty clone; the work is done in scripts/.
.PHONY: demo demo-lake test lint interleavings bench package console test-console bench-console

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

package: ## Make packages of the program in dist/: archive, wheel, Debian package.
	@scripts/package

console: ## Build the console, the pages that the program shows in a browser.
	@scripts/console build

test-console: ## Test the console, in a real browser against the real program.
	@scripts/console test

bench-console: ## Measure the console; one JSON object a line.
	@scripts/console bench
