"""What may become of a plan: replays under duration errors, failures and spot interruptions."""
