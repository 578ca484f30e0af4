-- Within this transaction no lock is waited for any longer.
SELECT set_config('lock_timeout', %(milliseconds)s::integer::text, true)
