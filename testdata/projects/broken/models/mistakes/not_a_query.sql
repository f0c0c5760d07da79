-- Mistake: a model is a query. This statement must never be run.
DROP TABLE orders
