//! Pages that people look at: a run, a trial, a diff
