-- Mistake: the word café is written in Latin-1, not in UTF-8.
SELECT 1 AS one
