-- Which days have been delivered?
-- @materialize: true
SELECT CAST(DATE '2026-01-01' + CAST(range AS INTEGER) AS DATE) AS day
FROM range({{ .env.days }})
