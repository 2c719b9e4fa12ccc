//! A proxy that speaks TLS in front of a server, with a certificate of an authority of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// The certificate of a [`TlsProxy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyCertificate {
    /// For this name or address, valid now.
    For(&'static str),
    /// For this name or address, and its time is over.
    ExpiredFor(&'static str),
}

/// A proxy on a loopback port; dropping it ends it.
#[derive(Debug)]
pub struct TlsProxy {
    port: u16,
    authority: String,
    task: JoinHandle<()>,
}

impl TlsProxy {
    /// Starts a proxy that passes on the bytes of each connection to `upstream`.
    pub async fn start(upstream: SocketAddr, certificate: ProxyCertificate) -> Self {
        let (authority, config) = server_config(&format!("authority for {upstream}"), certificate);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(pass_on(acceptor.clone(), near, upstream));
            }
        });
        Self {
            port,
            authority,
            task,
        }
    }

    /// The port of the proxy.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The certificate of the authority, in PEM form.
    pub fn authority(&self) -> &str {
        &self.authority
    }
}

impl Drop for TlsProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass_on(acceptor: TlsAcceptor, near: TcpStream, upstream: SocketAddr) {
    // A client that rejects the certificate ends the handshake.
    let Ok(mut near) = acceptor.accept(near).await else {
        return;
    };
    if let Ok(mut far) = TcpStream::connect(upstream).await {
        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
    }
}

/// A new authority, and the settings of a server with a certificate of it.
fn server_config(authority_name: &str, certificate: ProxyCertificate) -> (String, ServerConfig) {
    let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
    let name = &mut authority.distinguished_name;
    name.push(DnType::CommonName, authority_name);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().expect("a key");
    let signed = authority.self_signed(&authority_key);
    let pem = signed.expect("a certificate").pem();
    let issuer = Issuer::new(authority, authority_key);

    let (ProxyCertificate::For(name) | ProxyCertificate::ExpiredFor(name)) = certificate;
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
    if certificate == ProxyCertificate::ExpiredFor(name) {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    }
    let key = KeyPair::generate().expect("a key");
    let signed = params.signed_by(&key, &issuer).expect("a certificate");
    let private = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![signed.der().clone()], private)
        .expect("a certificate with its key");
    // As proxies do: HTTP/2 if the client can.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (pem, config)
}
