//! HTTPS with the system's certificate store: only servers with a certificate of a trusted
//! authority for their name are accepted, and those that ask for a client certificate get it.
//!
//! The path of the store is taken from an environment variable, so the client runs as a process of
//! its own.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio_rustls::TlsAcceptor;

use super::*;

/// The variable with the client's calls: lines of a URL, the expected outcome, and the file of a client
/// certificate with its key, if there is one.
const CALLS: &str = "TURNWIRE_TEST_TLS_CALLS";

fn authority(name: &str) -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("a certificate").pem();
    (pem, Issuer::new(params, key))
}

/// Starts a server for `name` with a certificate of `issuer` that sends `hi`. Returns its port.
async fn serve(name: &str, issuer: &Issuer<'static, KeyPair>) -> u16 {
    serve_to(name, issuer, None).await
}

/// Like [`serve`], for clients with a certificate of the authority `clients` alone.
async fn serve_to(name: &str, issuer: &Issuer<'static, KeyPair>, clients: Option<&str>) -> u16 {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
    let certificate = params.signed_by(&key, issuer).expect("a certificate");
    let private = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions");
    let config = match clients {
        None => config.with_no_client_auth(),
        Some(pem) => {
            let mut authorities = rustls::RootCertStore::empty();
            let certificate = CertificateDer::from_pem_slice(pem.as_bytes());
            authorities
                .add(certificate.expect("a certificate"))
                .expect("an authority");
            let verifier =
                WebPkiClientVerifier::builder_with_provider(authorities.into(), provider);
            config.with_client_cert_verifier(verifier.build().expect("a verifier"))
        }
    };
    let config = config
        .with_single_cert(vec![certificate.der().clone()], private)
        .expect("a certificate with its key");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            // A client that rejects the certificate closes during the handshake.
            let Ok(mut socket) = acceptor.accept(socket).await else {
                continue;
            };
            let mut buffer = [0; 4_096];
            let mut seen = Vec::new();
            while !seen.ends_with(b"{}") {
                match socket.read(&mut buffer).await {
                    Ok(n) if n > 0 => seen.extend_from_slice(&buffer[..n]),
                    _ => break,
                }
            }
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
            let _ = socket.write_all(answer).await;
            let _ = socket.shutdown().await;
        }
    });
    port
}

/// The client process of the test below; not a test by itself.
#[tokio::test]
#[ignore = "the client of another test"]
async fn client() {
    let calls = std::env::var(CALLS).expect("what to call");
    let dialer = dialer_resolving_to(&["127.0.0.1"], &["127.0.0.0/8"]);
    for call in calls.lines() {
        let words: Vec<&str> = call.split(' ').collect();
        let (url, expected) = (words[0], words[1]);
        let url: Url = url.parse().expect("a URL");
        let dialer = match words.get(2) {
            None => dialer.clone(),
            Some(file) => {
                let pem = std::fs::read(file).expect("a certificate");
                let dialer = dialer.with_client_certificate(&pem);
                dialer.expect("a certificate and its key")
            }
        };
        let answer = dialer
            .post_json(&url, RequestHeaders::default(), "{}", LIMITS)
            .await;
        match expected {
            "accepted" => assert_eq!(answer, response(200, "hi"), "{url}"),
            _ => assert_eq!(answer, Err(DialError::Unreachable), "{url}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_servers_trusted_for_their_name_are_accepted() {
    let (pem, known) = authority("known");
    let (others, stranger) = authority("stranger");
    let (good, bad) = (
        serve("a.test", &known).await,
        serve("a.test", &stranger).await,
    );
    let calls = format!(
        "https://a.test:{good}/ accepted\n\
         https://a.test:{bad}/ refused\n\
         https://b.test:{good}/ refused\n\
         https://a.test:{good}/ accepted"
    );
    run(&pem, calls).await;
    // A client that trusts the other authority accepts only that authority's server.
    let calls = format!("https://a.test:{bad}/ accepted\nhttps://a.test:{good}/ refused");
    run(&others, calls).await;
}

/// A client certificate of `issuer` with its key, in a file.
fn client_certificate(issuer: &Issuer<'static, KeyPair>, file: &str) -> std::path::PathBuf {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["turnwire.test".to_owned()]).expect("parameters");
    let certificate = params.signed_by(&key, issuer).expect("a certificate");
    let path = std::env::temp_dir().join(format!("turnwire-{}-{file}.pem", std::process::id()));
    let pem = format!("{}\n{}", certificate.pem(), key.serialize_pem());
    std::fs::write(&path, pem).expect("a file");
    path
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_certificate_is_sent_to_servers_that_ask_for_one() {
    let (trusted, known) = authority("known");
    let (clients, of_clients) = authority("clients");
    let (_, stranger) = authority("stranger");
    let open = serve("a.test", &known).await;
    let closed = serve_to("a.test", &known, Some(&clients)).await;
    let own = client_certificate(&of_clients, "own");
    let other = client_certificate(&stranger, "other");
    let (own_file, other_file) = (own.display(), other.display());
    let calls = format!(
        "https://a.test:{closed}/ accepted {own_file}\n\
         https://a.test:{closed}/ refused\n\
         https://a.test:{closed}/ refused {other_file}\n\
         https://a.test:{open}/ accepted {own_file}\n\
         https://a.test:{closed}/ accepted {own_file}"
    );
    run(&trusted, calls).await;
    for file in [own, other] {
        std::fs::remove_file(file).expect("the file is there");
    }
    let no_key = Dialer::check_client_certificate(clients.as_bytes());
    assert_eq!(no_key, Err(DialError::Setup));
    assert_eq!(
        Dialer::check_client_certificate(b"words"),
        Err(DialError::Setup)
    );
}

/// Runs the client process with an authority that it trusts.
async fn run(authority: &str, calls: String) {
    // Tests of one process run at once.
    let port = calls
        .split(['/', ':'])
        .find(|part| part.parse::<u16>().is_ok());
    let name = format!(
        "turnwire-dial-{}-{}.pem",
        std::process::id(),
        port.expect("a port")
    );
    let store = std::env::temp_dir().join(name);
    std::fs::write(&store, authority).expect("a file");
    let mut client = tokio::process::Command::new(std::env::current_exe().expect("this test"));
    client
        .args(["--ignored", "--exact", "dialer::tests::tls::client"])
        .env("SSL_CERT_FILE", &store)
        .env_remove("SSL_CERT_DIR")
        .env(CALLS, calls);
    let output = client.output().await.expect("it ran");
    std::fs::remove_file(&store).expect("the file is there");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(stdout.contains("1 passed"), "{stdout}\n{errors}");
}
