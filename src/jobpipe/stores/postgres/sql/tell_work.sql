SELECT pg_notify('jobpipe.work', ''), jobpipe.tell_changes()
