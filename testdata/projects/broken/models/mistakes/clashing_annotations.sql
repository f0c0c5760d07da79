-- Mistake: an annotation that is a value on one line and holds keys on the next.
-- @output: duckdb
-- @output.table: elsewhere
SELECT * FROM orders
