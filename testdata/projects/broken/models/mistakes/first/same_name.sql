-- No mistake: the first of two models of one name is the one that counts.
SELECT 'first' AS which
