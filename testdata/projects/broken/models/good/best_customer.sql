-- No mistake: who ordered most?
SELECT name FROM order_amounts ORDER BY amount DESC LIMIT 1
