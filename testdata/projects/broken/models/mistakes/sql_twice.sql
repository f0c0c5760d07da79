-- Mistake: SQL here and in sql_twice.yaml.
SELECT 1 AS one
