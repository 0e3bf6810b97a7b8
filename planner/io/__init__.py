"""Files in and out: instances, plans, traces; all faults at once, and nothing half written."""
