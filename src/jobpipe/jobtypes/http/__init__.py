"""The built-in job type `http`: it calls a URL, and never one that the operator has not allowed."""
