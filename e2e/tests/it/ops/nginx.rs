//! Debian's nginx with the shipped configuration in front of a server: on free ports, in a folder of
//! its own, with a certificate that is made for the test.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::environment;
use turnwire_testkit::journal::Journal;
use turnwire_testkit::server::free_port;

/// The clients of the tests read the bytes of a stream as they are, without the sizes of chunks.
const CLIENT: &str = "    chunked_transfer_encoding off;\n";
const READY_WITHIN: Duration = Duration::from_secs(20);

/// A running nginx; dropping it ends the process by its id.
pub(super) struct Nginx {
    child: Child,
    folder: TempDir,
    /// Where it takes requests without TLS, with the rules of the TLS server.
    pub(super) plain: SocketAddr,
    /// Where it takes requests over TLS.
    pub(super) tls: SocketAddr,
    /// Where it sends clients to TLS.
    pub(super) redirect: SocketAddr,
}

/// Replaces `from`, which must be there.
fn replace(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the configuration has no {from:?}");
    text.replace(from, to)
}

/// The shipped file with the ports and folders of the test.
fn site(folder: &Path, upstream: SocketAddr, ports: [SocketAddr; 3]) -> String {
    let [plain, tls, redirect] = ports;
    let path = environment::root().join("ops/proxy/nginx.conf");
    let text = fs::read_to_string(path).expect("the configuration");
    let folder = format!("{}/", folder.display());
    let text = replace(&text, "    listen [::]:80;\n", "");
    let text = replace(&text, "    listen [::]:443 ssl http2;\n", "");
    let text = replace(&text, "listen 80;", &format!("listen {redirect};"));
    let listen = format!("listen {tls} ssl http2;\n    listen {plain};");
    let text = replace(&text, "listen 443 ssl http2;", &listen);
    let text = replace(&text, "127.0.0.1:8421", &upstream.to_string());
    let text = replace(&text, "/etc/ssl/turnwire/", &folder);
    replace(&text, "/var/log/nginx/", &folder)
}

/// Makes a key and a certificate for `127.0.0.1`.
fn certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-subj", "/CN=127.0.0.1"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-keyout", "key.pem", "-out", "fullchain.pem"])
        .current_dir(folder)
        .output()
        .expect("openssl");
    assert!(made.status.success(), "{}", environment::text(&made));
}

impl Nginx {
    /// Starts nginx in front of `upstream`.
    pub(super) fn start(upstream: SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path();
        certificate(dir);
        let ports = [free_port(), free_port(), free_port()];
        fs::write(dir.join("turnwire.conf"), site(dir, upstream, ports)).expect("written");
        let path = dir.display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|name| format!("    {name}_temp_path {path}/{name};\n"))
            .collect();
        let main = format!(
            "daemon off;\nmaster_process off;\npid {path}/nginx.pid;\nerror_log {path}/error.log;\n\
             events {{ worker_connections 512; }}\n\
             http {{\n    access_log off;\n{CLIENT}{temporary}    include {path}/turnwire.conf;\n}}\n"
        );
        fs::write(dir.join("nginx.conf"), main).expect("written");
        let child = Command::new(environment::proxies().join("nginx"))
            .arg("-p")
            .arg(dir)
            .arg("-c")
            .arg(dir.join("nginx.conf"))
            .args(["-e", "stderr"])
            .stdin(Stdio::null())
            .stderr(fs::File::create(dir.join("stderr")).expect("a file"))
            .spawn()
            .expect("nginx");
        let [plain, tls, redirect] = ports;
        let mut nginx = Self {
            child,
            folder,
            plain,
            tls,
            redirect,
        };
        nginx.wait_until_ready();
        nginx
    }

    fn wait_until_ready(&mut self) {
        let started = Instant::now();
        while TcpStream::connect(self.plain).is_err() {
            let ended = self.child.try_wait().expect("its state");
            let waited = started.elapsed() < READY_WITHIN;
            assert!(
                ended.is_none() && waited,
                "{ended:?} {}",
                self.log("stderr")
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A client that speaks to nginx instead of the server.
    pub(super) fn api(&self, journal: &Journal) -> ApiClient {
        ApiClient::new(self.plain, journal.clone())
    }

    /// The certificate that a client has to trust.
    pub(super) fn certificate(&self) -> PathBuf {
        self.folder.path().join("fullchain.pem")
    }

    /// What nginx has written into a file of its folder.
    pub(super) fn log(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
