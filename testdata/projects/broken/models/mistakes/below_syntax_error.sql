-- No mistake of its own: it reads a model that has one, and is skipped.
SELECT * FROM syntax_error
