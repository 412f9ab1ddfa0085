//! Archives of a world: pack, unpack safely, convert, compare.
//!
//! A *world* is what an agent works on: the files of two *subsystems*, [`FILESYSTEM`] and
//! [`APPS_DATA`]. It travels as `tar.gz` (from and to an environment) and as `zip` (to grading and to
//! people), and lies on disk as two directories.
//!
//! * [`archive`] packs directories, unpacks archives all-or-nothing and confined to their target,
//!   and converts between the two formats.
//! * [`World`] reads any of these forms, found out by content, under one set of paths.
//! * [`compare`](fn@compare) says what changed between two worlds.
//!
//! Everything here is synchronous and streams; callers with an async runtime use a blocking thread.
//! Everything that comes from outside is held to [`Limits`].

pub mod archive;
mod compare;
mod crc;
mod database;
mod limits;
mod name;
mod resolve;
mod tree;
mod world;

pub use compare::{
    Change, ChangeKind, CompareOptions, Diff, DiffLimits, UnifiedDiff, compare, unified_diff,
};
pub use limits::{LimitExceeded, Limits};
pub use world::{Entry, EntryKind, EntryReader, World, WorldError, WriteReport};

/// The subsystem of the files the agent works on.
pub const FILESYSTEM: &str = "filesystem";

/// The subsystem of the private state of the application servers.
pub const APPS_DATA: &str = ".apps_data";

/// The subsystems of a world, in the order in which they stand in a snapshot.
pub const SUBSYSTEMS: [&str; 2] = [FILESYSTEM, APPS_DATA];
