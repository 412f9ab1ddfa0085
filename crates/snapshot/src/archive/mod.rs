//! Packing, unpacking and converting archives.

mod convert;
pub(crate) mod header;
pub(crate) mod members;
mod pack;
mod place;
mod stage;
mod stream;
mod unpack;

pub use convert::{ConvertError, ConvertReport, tar_gz_to_zip, zip_to_subsystem_tars};
pub use pack::{PackError, PackOptions, PackReport, Skipped, pack_tar_gz};
pub use unpack::{Fault, Refusal, Staged, UnpackError, UnpackReport, stage_tar_gz, unpack_tar_gz};
