-- Mistake: a column that is not there, one letter away from one that is.
SELECT
    day,
    amont
FROM orders
