//! TLS to a server, which a proxy in front of it speaks: the authorities that are trusted, and what a
//! failed handshake means for the caller.

use std::io;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig};
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::address::ServerAddress;
use crate::error::{Error, Result};

/// Certificates of authorities that a [`Client`](crate::Client) trusts besides those that the
/// operating system trusts.
#[derive(Clone, Debug, Default)]
pub struct ExtraAuthorities(Vec<CertificateDer<'static>>);

impl ExtraAuthorities {
    /// The certificates of a PEM file, at least one.
    pub fn from_pem(pem: &[u8]) -> Result<Self> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        match certificates {
            Ok(found) if !found.is_empty() => Ok(Self(found)),
            Ok(_) => Err(Error::Address("no certificate in PEM form".to_owned())),
            Err(error) => Err(Error::Address(format!("not a PEM file: {error}"))),
        }
    }
}

/// Opens TLS connections to one server.
#[derive(Clone)]
pub(crate) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    /// TLS to `address`, whose certificate must be signed by an authority of the system or one of
    /// `extra`.
    pub(crate) fn new(address: &ServerAddress, extra: ExtraAuthorities) -> Result<Self> {
        let setup = |error: rustls::Error| {
            let help = "install the certificates of the system, or name a file of your own";
            Error::Address(format!("TLS cannot be used: {error}; {help}"))
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(extra.0, Arc::clone(&provider));
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(setup)?;
        let mut config = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier.map_err(setup)?))
            .with_no_client_auth();
        // A proxy that prefers HTTP/2 must not choose it.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(address.host().to_owned());
        let name = name.map_err(|_| Error::Address(format!("`{address}` has no host name")))?;
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            name,
        })
    }

    pub(crate) async fn connect(
        &self,
        address: &ServerAddress,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>> {
        let handshake = self.connector.connect(self.name.clone(), stream).await;
        handshake.map_err(|error| handshake_error(address, error))
    }
}

/// Tells a rejected certificate, which stays rejected, from a connection that broke.
fn handshake_error(address: &ServerAddress, error: io::Error) -> Error {
    let inner = error.get_ref();
    match inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) => Error::Certificate {
            server: address.to_string(),
            reason: certificate_fault(why),
        },
        Some(rustls::Error::InvalidMessage(_)) => {
            Error::Connection(format!("{address} does not speak TLS"))
        }
        Some(other) => Error::Connection(format!("TLS with {address}: {other}")),
        None => error.into(),
    }
}

/// What is wrong with a certificate, for people.
fn certificate_fault(error: &CertificateError) -> String {
    let words = match error {
        // A bad signature is that of another authority with the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "no authority that is trusted here has signed it"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another host name"
        }
        CertificateError::Revoked => "it was revoked",
        other => return other.to_string(),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_without_a_certificate_is_refused() {
        for pem in ["", "words", "-----BEGIN CERTIFICATE-----\nAA"] {
            assert!(ExtraAuthorities::from_pem(pem.as_bytes()).is_err(), "{pem}");
        }
    }
}
