"""What every other package of specverify uses: verdicts as data, replay identifiers, argument checks, parallel work."""
