"""Evidence about the suite itself: planted bugs killed, other projects' tests for comparison, false alarms counted."""
