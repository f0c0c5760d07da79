-- No mistake: how much did each customer order?
-- @materialize: true
SELECT customers.name, sum(orders.amount) AS amount
FROM orders
JOIN customers USING (customer_id)
GROUP BY customers.name
