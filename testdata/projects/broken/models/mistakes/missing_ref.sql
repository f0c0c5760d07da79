-- Mistake: a ref to nothing.
SELECT * FROM {{ ref "no_such_model" }}
