//! Google's credentials and the access tokens that they give.

mod credentials;
mod tokens;

pub use credentials::{CREDENTIALS, Found, Missing, find};
pub use tokens::Tokens;

/// The variable that holds an access token by itself, as gcloud has it.
pub const ACCESS_TOKEN: &str = "CLOUDSDK_AUTH_ACCESS_TOKEN";

/// Every variable that is looked at beside [`CREDENTIALS`].
pub const VARIABLES: &[&str] = &[
    ACCESS_TOKEN,
    credentials::GCLOUD_FOLDER,
    credentials::HOME,
    credentials::METADATA_HOST,
    credentials::CLOUD_RUN,
];
