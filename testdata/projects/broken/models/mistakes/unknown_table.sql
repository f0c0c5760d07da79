-- Mistake: a table that is not there, two letters away from one that is.
SELECT * FROM ordres
