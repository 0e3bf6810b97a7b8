"""Planning night by night: one run under a lock, a plan folder whole or not at all, what has changed since the last."""
