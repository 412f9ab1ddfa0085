//! Trials: one or many at once; ledger, resume, repetition, statistics
