//! Whom we trust, and by which certificate we are known.

use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::access::{Access, AccessError};

/// The settings of connections.
pub(super) fn config(access: &Access) -> Result<ClientConfig, AccessError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| AccessError::new("TLS", error))?;
    let builder = if access.endpoint.is_encrypted() {
        builder.with_native_roots().map_err(|error| {
            let remedy = "install the system's CA certificates, or name their file in SSL_CERT_FILE";
            AccessError::new("TLS", format!("no trusted certificates found ({error}); {remedy}"))
        })?
    } else {
        // Nobody is to be trusted over a connection that is not encrypted.
        builder.with_root_certificates(rustls::RootCertStore::empty())
    };
    let Some((certificate, key)) = &access.client_certificate else { return Ok(builder.with_no_client_auth()) };
    let chain = certificate.read().map_err(|error| error.to_string()).and_then(|text| {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        chain.map_err(|error| error.to_string())
    });
    let chain = chain.map_err(|error| {
        AccessError::new("OSC_X509_CLIENT_CERT", format!("{certificate}: {error}; name a PEM file"))
    })?;
    // What is wrong with a key is not told in its own words.
    let unreadable =
        || AccessError::new("OSC_X509_CLIENT_KEY", format!("{key}: cannot be read as a private key; name a PEM file"));
    let text = key.read().map_err(|_| unreadable())?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| unreadable())?;
    let config = builder.with_client_auth_cert(chain, key);
    config
        .map_err(|error| AccessError::new("OSC_X509_CLIENT_KEY", format!("{error}; it must belong to the certificate")))
}
