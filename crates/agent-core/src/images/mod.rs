//! Pictures on their way to a model: what Anthropic takes, and pictures that only have an address.

mod anthropic;
mod fetch;
mod shrink;

pub use fetch::{FetchLimits, ImageFetchError, ImageFetcher};

pub(crate) use anthropic::ImagePolicy;
