-- No mistake of its own: it reads a member of a cycle, and is skipped.
SELECT * FROM cycle_two
