-- Mistake: a variable that is defined nowhere, one letter away from one that is.
SELECT * FROM orders WHERE amount > {{ .env.smalest_order }}
