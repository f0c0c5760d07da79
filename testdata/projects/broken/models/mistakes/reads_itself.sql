-- Mistake: a cycle of one.
SELECT * FROM reads_itself
