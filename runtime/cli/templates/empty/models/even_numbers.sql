-- A model reads another one by its plain name. Change either file and run again: only what depends on it is built.
SELECT count(*) AS how_many, sum(number) AS total
FROM numbers
WHERE is_even
