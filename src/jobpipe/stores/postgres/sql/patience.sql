-- Within this transaction nothing is waited for any longer. Why: who waits may be the one who keeps leases alive.
SELECT set_config('lock_timeout', '2000', true)
