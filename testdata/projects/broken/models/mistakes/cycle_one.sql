-- Mistake: reads cycle_two, which reads cycle_three, which reads this.
SELECT * FROM cycle_two
