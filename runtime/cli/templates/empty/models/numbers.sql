-- A model is a SELECT in a file; its name is the file's name.
-- Annotations say how it is kept: this one is a table, without the line it is a view.
-- @materialize: true
SELECT number, number % 2 = 0 AS is_even
FROM range(1, 11) AS numbers(number)
