UPDATE jobpipe.signals SET is_used = true WHERE job = %(job)s AND name = %(name)s RETURNING payload
