//! Packing, unpacking and converting archives.

mod ahead;
mod convert;
mod format;
pub(crate) mod gzip;
pub(crate) mod header;
mod layer;
pub(crate) mod members;
mod pack;
mod place;
mod share;
mod sink;
mod stage;
mod staging;
mod stream;
mod sweep;
mod unpack;
pub(crate) mod zip_member;

pub use convert::{ConvertError, ConvertReport, tar_gz_to_zip, zip_to_subsystem_tars};
pub use format::ArchiveFormat;
pub use layer::{ChangeTime, LayerReport, pack_layer};
pub use members::{Member, MemberKind, Owner};
pub use pack::{PackError, PackOptions, PackReport, Skipped, pack, pack_into, pack_tar_gz};
pub use share::share_with_group;
pub use sink::Sink;
pub use staging::Staging;
pub use sweep::{SweepReport, sweep};
pub use unpack::{Fault, Refusal, Staged, UnpackError, UnpackReport, stage_tar_gz, unpack_tar_gz};
