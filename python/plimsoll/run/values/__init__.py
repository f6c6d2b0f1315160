"""Read-backs of the script, and the host values that answer them."""
