//! Helpers, evals, scoring: from a diff and a trajectory to grades
