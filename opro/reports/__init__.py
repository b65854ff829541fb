"""What a person reads of a run, of a step and of an evaluation."""
