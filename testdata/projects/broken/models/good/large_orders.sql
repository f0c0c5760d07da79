-- No mistake: which orders are large enough to count? A template with a variable from .env.
SELECT * FROM {{ ref "orders" }} WHERE amount >= {{ .env.smallest_order }}
