"""Parts used by every other package: verdicts, replay identifiers, argument checks, parallel work."""
