"""The foundation of every room: verdicts as data, replay identifiers, validated arguments, parallel work."""
