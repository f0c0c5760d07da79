-- Reads no trips: it stays as it is when those of a day are corrected.
-- @materialize: true
SELECT borough, count(*) AS stations FROM stations GROUP BY borough ORDER BY borough
