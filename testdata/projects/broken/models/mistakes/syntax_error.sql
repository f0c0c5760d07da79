-- Mistake: a bracket that is never closed.
SELECT
    day,
    sum(amount AS amount
FROM orders
GROUP BY day
