//! Pictures that only have an address, fetched so that they can be sent (`spec/agents.md` §16.2).

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use formats::chat::ImageUrl;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Response, Url};

use crate::tools::image_media_type;

/// Limits of fetching a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// Time of one request. Default 30 s.
    pub time: Duration,
    /// Bytes of a picture. Default 5 MiB.
    pub bytes: usize,
    /// Redirects that are followed. Default 10.
    pub redirects: usize,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30),
            bytes: 5 * 1024 * 1024,
            redirects: 10,
        }
    }
}

/// A picture that could not be fetched.
#[derive(Debug, thiserror::Error)]
#[error("image {index} (`{url}`): {reason}")]
pub struct ImageFetchError {
    /// Its place, counted from 0.
    pub index: usize,
    /// Its address, shortened.
    pub url: String,
    /// What went wrong.
    pub reason: String,
}

/// Fetches pictures over https, for agents whose provider takes no addresses.
#[derive(Debug, Clone)]
pub struct ImageFetcher {
    http: reqwest::Client,
    limits: FetchLimits,
    /// The only scheme that is asked; another one in tests alone.
    scheme: &'static str,
}

impl ImageFetcher {
    /// A fetcher.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(limits: FetchLimits) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            // Each hop is looked at: a redirect must not lead to plain http or into a network.
            .redirect(reqwest::redirect::Policy::none())
            .timeout(limits.time)
            .build()?;
        Ok(Self::with_client(http, limits))
    }

    /// A fetcher that uses `http`, which must not follow redirects by itself.
    #[must_use]
    pub fn with_client(http: reqwest::Client, limits: FetchLimits) -> Self {
        Self {
            http,
            limits,
            scheme: "https",
        }
    }

    /// Puts a data URL in the place of each address; data URLs stay, and so do the other keys.
    ///
    /// # Errors
    /// [`ImageFetchError`] of the first picture that cannot be had; a scheme other than https is
    /// never asked.
    pub async fn fetch(&self, images: Vec<ImageUrl>) -> Result<Vec<ImageUrl>, ImageFetchError> {
        let mut fetched = Vec::with_capacity(images.len());
        for (index, mut image) in images.into_iter().enumerate() {
            if !image.url.starts_with("data:") {
                image.url = self.data_url(&image.url).await.map_err(|reason| {
                    let url = image.url.chars().take(200).collect();
                    ImageFetchError { index, url, reason }
                })?;
            }
            fetched.push(image);
        }
        Ok(fetched)
    }

    async fn data_url(&self, address: &str) -> Result<String, String> {
        let mut url = self.address(address)?;
        for _ in 0..=self.limits.redirects {
            let asked = self.http.get(url.clone()).send().await;
            let response = asked.map_err(|error| error.without_url().to_string())?;
            let status = response.status();
            if !status.is_redirection() {
                if !status.is_success() {
                    return Err(format!("the server answered {status}"));
                }
                return self.read(response).await;
            }
            let target = response.headers().get(LOCATION);
            let target = target
                .and_then(|target| target.to_str().ok())
                .ok_or("a redirect without an address")?;
            let target = url.join(target).map_err(|error| error.to_string())?;
            url = self.address(target.as_str())?;
        }
        Err(format!("more than {} redirects", self.limits.redirects))
    }

    fn address(&self, address: &str) -> Result<Url, String> {
        let url = Url::parse(address).map_err(|error| format!("no address: {error}"))?;
        if url.scheme() == self.scheme {
            Ok(url)
        } else {
            let (only, other) = (self.scheme, url.scheme());
            Err(format!("only {only} is fetched, not `{other}`"))
        }
    }

    async fn read(&self, mut response: Response) -> Result<String, String> {
        let declared = response.headers().get(CONTENT_TYPE);
        let declared = declared
            .and_then(|kind| kind.to_str().ok())
            .and_then(|kind| kind.split(';').next())
            .map(|kind| kind.trim().to_lowercase())
            .filter(|kind| kind.starts_with("image/"));
        let mut bytes = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| error.without_url().to_string())?
        {
            if bytes.len() + chunk.len() > self.limits.bytes {
                return Err(format!("it has more than {} bytes", self.limits.bytes));
            }
            bytes.extend_from_slice(&chunk);
        }
        let data = STANDARD.encode(&bytes);
        let kind = match &declared {
            Some(kind) => kind.as_str(),
            None => image_media_type(&data).unwrap_or("application/octet-stream"),
        };
        Ok(format!("data:{kind};base64,{data}"))
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::{StatusCode, header};
    use axum::response::Redirect;
    use axum::routing::get;

    use super::*;

    const GIF: &[u8] = b"GIF89a\x01\0\x01\0";

    /// A server on loopback, and a fetcher that asks it over plain http.
    async fn server() -> (String, ImageFetcher) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new()
            .route(
                "/named",
                get(|| async { ([(header::CONTENT_TYPE, "image/webp; q=1")], GIF) }),
            )
            .route(
                "/unnamed",
                get(|| async { ([(header::CONTENT_TYPE, "text/plain")], GIF) }),
            )
            .route("/odd", get(|| async { "what is this" }))
            .route("/large", get(|| async { vec![0u8; 2000] }))
            .route("/once", get(|| async { Redirect::temporary("/named") }))
            .route("/round", get(|| async { Redirect::temporary("/round") }))
            .route(
                "/away",
                get(|| async { Redirect::temporary("ftp://10.0.0.1/x") }),
            )
            .route("/none", get(|| async { StatusCode::NOT_FOUND }));
        tokio::spawn(async move { axum::serve(listener, app).await });
        let limits = FetchLimits {
            bytes: 1000,
            ..FetchLimits::default()
        };
        let fetcher = ImageFetcher {
            scheme: "http",
            ..ImageFetcher::new(limits).unwrap()
        };
        (base, fetcher)
    }

    fn image(url: &str) -> ImageUrl {
        serde_json::from_value(serde_json::json!({"url": url, "detail": "low"})).unwrap()
    }

    #[tokio::test]
    async fn pictures_become_data_urls_of_their_kind() {
        let (base, fetcher) = server().await;
        let given =
            ["/named", "/unnamed", "/odd", "/once"].map(|path| image(&format!("{base}{path}")));
        let mut given = given.to_vec();
        given.push(image("data:image/png;base64,AAAA"));
        let fetched = fetcher.fetch(given).await.unwrap();
        let gif = STANDARD.encode(GIF);
        let expected = [
            format!("data:image/webp;base64,{gif}"),
            format!("data:image/gif;base64,{gif}"),
            format!(
                "data:application/octet-stream;base64,{}",
                STANDARD.encode("what is this")
            ),
            format!("data:image/webp;base64,{gif}"),
            "data:image/png;base64,AAAA".to_owned(),
        ];
        for (fetched, expected) in fetched.iter().zip(expected) {
            assert_eq!(
                serde_json::json!(fetched),
                serde_json::json!({"url": expected, "detail": "low"})
            );
        }
    }

    #[tokio::test]
    async fn what_cannot_be_had_is_named_with_its_place() {
        let (base, fetcher) = server().await;
        for (path, reason) in [
            ("/large", "it has more than 1000 bytes"),
            ("/round", "more than 10 redirects"),
            ("/away", "only http is fetched, not `ftp`"),
            ("/none", "the server answered 404 Not Found"),
        ] {
            let url = format!("{base}{path}");
            let given = vec![image("data:,"), image(&url)];
            let error = fetcher.fetch(given).await.unwrap_err();
            assert_eq!(error.to_string(), format!("image 1 (`{url}`): {reason}"));
        }
    }

    /// A server with a certificate by an authority of its own, which `client` trusts.
    async fn https_server() -> (String, reqwest::Client) {
        use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        use tokio_rustls::TlsAcceptor;
        use tokio_rustls::rustls::ServerConfig;
        use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
        use tokio_rustls::rustls::pki_types::PrivateKeyDer;

        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = authority.self_signed(&authority_key).unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let server = server.signed_by(&key, &issuer).unwrap();
        let config = ServerConfig::builder_with_provider(std::sync::Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![server.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(std::sync::Arc::new(config));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                // A client that does not trust the certificate goes away.
                let Ok(mut socket) = acceptor.accept(socket).await else {
                    continue;
                };
                let mut request = vec![0; 4096];
                let length = socket.read(&mut request).await.unwrap();
                let asked = String::from_utf8_lossy(&request[..length]).into_owned();
                let reply = if asked.starts_with("GET /plain ") {
                    "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/x.png\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned()
                } else if asked.starts_with("GET /moved ") {
                    "HTTP/1.1 302 Found\r\nlocation: /x.gif\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned()
                } else {
                    format!(
                        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{}",
                        GIF.len(),
                        String::from_utf8_lossy(GIF)
                    )
                };
                socket.write_all(reply.as_bytes()).await.unwrap();
                let _ = socket.shutdown().await;
            }
        });
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .tls_certs_only([reqwest::Certificate::from_pem(root.pem().as_bytes()).unwrap()])
            .build()
            .unwrap();
        (format!("https://localhost:{port}"), client)
    }

    #[tokio::test]
    async fn pictures_come_over_https_and_no_redirect_leads_out_of_it() {
        let (base, client) = https_server().await;
        let fetcher = ImageFetcher::with_client(client, FetchLimits::default());
        let given = ["/x.gif", "/moved"].map(|path| image(&format!("{base}{path}")));
        let fetched = fetcher.fetch(given.to_vec()).await.unwrap();
        let expected = format!("data:image/gif;base64,{}", STANDARD.encode(GIF));
        assert!(fetched.iter().all(|picture| picture.url == expected));

        let refused = fetcher.fetch(vec![image(&format!("{base}/plain"))]).await;
        let reason = refused.unwrap_err().reason;
        assert_eq!(reason, "only https is fetched, not `http`");

        // An authority that nobody knows is not trusted.
        let stranger = ImageFetcher::new(FetchLimits::default()).unwrap();
        let refused = stranger.fetch(vec![image(&format!("{base}/x.gif"))]).await;
        assert!(refused.is_err());
    }

    #[tokio::test]
    async fn only_https_is_asked() {
        let fetcher = ImageFetcher::new(FetchLimits::default()).unwrap();
        for url in ["http://127.0.0.1:9/x.png", "file:///etc/passwd", "x.png"] {
            let error = fetcher.fetch(vec![image(url)]).await.unwrap_err();
            assert_eq!(error.index, 0, "{error}");
        }
    }
}
