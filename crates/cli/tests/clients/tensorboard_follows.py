"""Prints step and loss as TensorBoard's own reader gives them: tensorboard_follows.py FOLDER."""

import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1])
events.Reload()
for e in events.Scalars("loss"):
    print(e.step, e.value)
