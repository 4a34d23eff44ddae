"""Exit codes of all commands; 0 is success, and 143 that of SIGTERM."""

GATE = 1  # a gate that does not hold
USAGE = 2  # wrong usage
FAILED = 3  # anything else that fails
INTERRUPTED = 130  # Ctrl-C
CLOSED_PIPE = 141  # a reader that closed the pipe
