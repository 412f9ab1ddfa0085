//! Google's credentials and the access tokens that they give.

mod credentials;
mod tokens;

pub use credentials::{CREDENTIALS, Found, Missing, find};
pub use tokens::Tokens;

/// Every variable that is looked at beside [`CREDENTIALS`].
pub const VARIABLES: &[&str] = &[
    credentials::GCLOUD_FOLDER,
    credentials::HOME,
    credentials::METADATA_HOST,
    credentials::CLOUD_RUN,
];
