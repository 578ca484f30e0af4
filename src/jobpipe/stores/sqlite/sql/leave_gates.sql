-- Those whose lease has ended. Why apart: most jobs have no gate, and to write one costs.
UPDATE jobs SET gate = NULL WHERE gate IS NOT NULL AND lease_until IS NULL
