"""What every room stands on: verdicts as data, replay identifiers, arguments looked at, work shared among processes."""
