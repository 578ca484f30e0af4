"""Where `jobpipe` meets frameworks. Nothing else imports these modules; each needs its framework installed."""
