"""Values that the script reads back from the device, and the host's answers to them."""
