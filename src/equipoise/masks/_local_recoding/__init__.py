"""Clusters of similar records behind `LocalRecode`."""
