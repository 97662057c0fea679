"""From a policy to a release folder and back: balance, release, evidence, codebook, verify, replay."""
