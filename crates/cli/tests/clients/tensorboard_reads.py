"""TensorBoard's own reader finds every figure: tensorboard_reads.py FOLDER."""

import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1])
events.Reload()
tags = events.Tags()["scalars"]
for tag in ["loss", "learning_rate", "knn/top1", "anchors"]:
    assert tag in tags, tags
losses = events.Scalars("loss")
assert [e.step for e in losses] == [1, 2], losses
print("loss", *(e.value for e in losses))
