SELECT jobpipe.tell_changes()
