-- No mistake: a byte order mark and line ends from another system are fine.
-- @materialize: true
SELECT count(*) AS orders
FROM orders
