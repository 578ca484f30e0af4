-- Those that do not run any more. Why apart: most jobs have no gate, and to write one costs.
UPDATE jobs SET gate = NULL WHERE gate IS NOT NULL AND status <> 'running'
