-- Mistake: a template that is never closed.
SELECT * FROM {{ ref "orders"
