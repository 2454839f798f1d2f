//! Rounds and epochs, schedule, checkpoints, resume, events.
