"""`python -m anchorhood`: the command line."""

from ._command_line import main

main()
