//! The command line and a server behind a proxy that speaks TLS: `https` and `wss`, certificates that
//! are not trusted, and tokens that must not be readable on the way.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;
use tokio::process::Command;
use turnwire_testkit::tls_proxy::{ProxyCertificate, TlsProxy};

use crate::server::{BINARY, Server};

const SCRIPT: &str = "- when: {}\n  steps: [{text: \"hi there\"}]\n";

/// A server behind a proxy, and the file with the authority of its certificate.
struct Proxied {
    dir: TempDir,
    server: Server,
    proxy: TlsProxy,
}

impl Proxied {
    async fn start(certificate: ProxyCertificate) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let server = Server::start(dir.path(), SCRIPT);
        let upstream: SocketAddr = server.address.parse().expect("an address");
        let proxy = TlsProxy::start(upstream, certificate).await;
        std::fs::write(dir.path().join("ca.pem"), proxy.authority()).expect("a file");
        Self { dir, server, proxy }
    }

    fn ca_file(&self) -> std::path::PathBuf {
        self.dir.path().join("ca.pem")
    }
}

/// A command without settings of the environment.
fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).env("HOME", home);
    for name in [
        "CA_FILE",
        "TOKEN",
        "TOKEN_FILE",
        "ALLOW_HTTP_TOKEN",
        "SERVER",
    ] {
        command.env_remove(format!("TURNWIRE_{name}"));
    }
    command
}

/// The exit code and the error output.
fn failure(output: &Output) -> (Option<i32>, String) {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.stdout.is_empty(), "{output:?}");
    (output.status.code(), errors)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chat_reaches_a_server_behind_tls() {
    let proxied = Proxied::start(ProxyCertificate::For("localhost")).await;
    let url = format!("https://localhost:{}", proxied.proxy.port());
    let ca_file = proxied.ca_file();
    let ca_flag = ca_file.to_str().expect("a path");
    let chat = ["chat", "hello", "--server", &url];
    let by_flag = command(
        proxied.dir.path(),
        &[&chat[..], &["--ca-file", ca_flag]].concat(),
    );
    let mut by_variable = command(proxied.dir.path(), &chat);
    by_variable.env("TURNWIRE_CA_FILE", &ca_file);
    // The authorities of the system, among which this one is.
    let mut by_system = command(proxied.dir.path(), &chat);
    by_system.env("SSL_CERT_FILE", &ca_file);
    by_system.env_remove("SSL_CERT_DIR");
    for mut command in [by_flag, by_variable, by_system] {
        let output = command.output().await.expect("it ran");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(text.trim_end(), "hi there");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn untrusted_certificate_ends_the_command_with_a_reason() {
    let good = Proxied::start(ProxyCertificate::For("localhost")).await;
    let expired = Proxied::start(ProxyCertificate::ExpiredFor("localhost")).await;
    let session = "sess_01KA5T7C3N4W9Q2E8R6Y1V5B0M";
    let cases = [
        // Another authority than the one that signed.
        (
            &good,
            "localhost",
            &expired,
            "no authority that is trusted here has signed it",
        ),
        (&good, "127.0.0.1", &good, "it is for another host name"),
        (&expired, "localhost", &expired, "it has expired"),
    ];
    for (proxied, host, trusted, reason) in cases {
        let url = format!("https://{host}:{}", proxied.proxy.port());
        let ca_file = trusted.ca_file();
        let ca_file = ca_file.to_str().expect("a path");
        let chat: &[&str] = &["chat", "hello"];
        // A watch reconnects after a loss; a certificate stays what it is.
        for words in [chat, &["tail", session], &["usage"]] {
            let more = ["--server", &url, "--ca-file", ca_file];
            let mut command = command(proxied.dir.path(), &[words, &more].concat());
            let output = command.output().await.expect("it ran");
            let (code, errors) = failure(&output);
            assert_eq!(code, Some(2), "{words:?}: {errors}");
            let expected = format!("the certificate of {url} is not trusted: {reason}");
            assert!(errors.contains(&expected), "{words:?}: {errors}");
        }
    }
    // Without a file of its own, the advice names it.
    let url = format!("https://localhost:{}", good.proxy.port());
    let output = command(good.dir.path(), &["chat", "hello", "--server", &url]).output();
    let (code, errors) = failure(&output.await.expect("it ran"));
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("--ca-file"), "{errors}");
    // A file that has no certificate, and a server that speaks no TLS.
    let script = good.dir.path().join("script.yaml");
    let script = script.to_str().expect("a path");
    let words = ["usage", "--server", &url, "--ca-file", script];
    let output = command(good.dir.path(), &words).output();
    let (code, errors) = failure(&output.await.expect("it ran"));
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("no certificate in PEM form"), "{errors}");
    let plain = format!("https://{}", good.server.address);
    let output = command(good.dir.path(), &["chat", "hello", "--server", &plain]).output();
    let (code, errors) = failure(&output.await.expect("it ran"));
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("does not speak TLS"), "{errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_is_not_sent_in_the_clear_without_consent() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    let (_, port) = server.address.rsplit_once(':').expect("a port");
    // Reaches this computer, and is not one of its loopback addresses.
    let url = format!("http://0.0.0.0:{port}");
    let run = async |variable: &str, arguments: &[&str]| {
        let mut command = command(
            dir.path(),
            &[&["usage", "--server", &url], arguments].concat(),
        );
        command.env("TURNWIRE_TOKEN", "twt_secret");
        command.env("TURNWIRE_ALLOW_HTTP_TOKEN", variable);
        command.output().await.expect("it ran")
    };
    for variable in ["", "false", "0"] {
        let (code, errors) = failure(&run(variable, &[]).await);
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains("--allow-http-token"), "{errors}");
        assert!(!errors.contains("twt_secret"), "{errors}");
    }
    for (variable, arguments) in [("true", &[][..]), ("1", &[]), ("", &["--allow-http-token"])] {
        let output = run(variable, arguments).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!errors.contains("--allow-http-token"), "{errors}");
    }
    // Without a token there is nothing to protect, and a loopback address is safe.
    let output = command(dir.path(), &["usage", "--server", &server.url()])
        .env("TURNWIRE_TOKEN", "twt_secret")
        .output();
    let output = output.await.expect("it ran");
    assert!(output.status.success(), "{output:?}");
}
