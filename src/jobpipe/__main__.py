"""`python -m jobpipe` is the command `jobpipe`."""

from .cli.main import main

if __name__ == "__main__":
    main()
