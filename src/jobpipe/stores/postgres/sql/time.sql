SELECT jobpipe.now(%(now)s)
