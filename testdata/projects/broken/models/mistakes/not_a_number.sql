-- Mistake: correct SQL that fails on the data.
-- @materialize: true
SELECT name::INTEGER AS number FROM customers
