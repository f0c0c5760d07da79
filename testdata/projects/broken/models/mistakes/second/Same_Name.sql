-- Mistake: a second model of the same name; upper and lower case make no difference.
SELECT 'second' AS which
