-- Mistake: see cycle_one.
SELECT * FROM cycle_one
