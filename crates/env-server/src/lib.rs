//! The HTTP interface of an environment
