"""How far the suite itself can be believed: planted bugs killed, other projects' tests beside, false alarms counted."""
