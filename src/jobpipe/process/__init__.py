"""The processes of a service: the supervisor, its children, and what they need before the web starts."""
