-- Mistake: an annotation with a value that is neither true nor false.
-- @materialize: perhaps
SELECT * FROM orders
