"""Evidence about the suite itself: planted bugs refuted, other projects' tests compared, false alarms counted."""
