-- Mistake: told together with those of the manifest.
SELECT 1 AS
