//! Placeholder until the run planner lands.
