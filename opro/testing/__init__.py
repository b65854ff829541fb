"""What tests and benchmarks run against: a loopback endpoint that counts. No part of a run."""
