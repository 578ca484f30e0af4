"""`jobpipe top`: a live view of a running service in the terminal.

`model` and `press` say what is known and what a key does, `view` and `rows` what it looks like, all without a terminal; `screen`,
`keys` and `signals` are the terminal, `watcher` asks the service, and `run` brings them together.
"""
