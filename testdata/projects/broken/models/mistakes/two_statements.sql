-- Mistake: a model is one statement.
SELECT 1 AS one;
SELECT 2 AS two;
