"""`python -m kschedx`."""

from kschedx.cli import main

if __name__ == "__main__":
    main()
