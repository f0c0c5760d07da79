-- No mistake, and not built while the manifest has some.
SELECT 1 AS one
