-- Refused calls have a bound of their own, so that a flood of them pushes out no call that was carried out.
ALTER TABLE audit ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
CREATE INDEX audit_refused ON audit (refused, number);
