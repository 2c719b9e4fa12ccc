//! The configurations for HAProxy and Caddy, as those programs read them.

use std::fs;
use std::process::Command;

use turnwire_testkit::environment;

/// A key and a certificate in one file, as HAProxy reads them.
fn certificate(folder: &std::path::Path) -> String {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-subj", "/CN=chat.example.com"])
        .args(["-keyout", "both.pem", "-out", "certificate.pem"])
        .current_dir(folder)
        .output()
        .expect("openssl");
    assert!(made.status.success(), "{}", environment::text(&made));
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("a file");
    let path = folder.join("both.pem");
    fs::write(&path, read("certificate.pem") + &read("both.pem")).expect("written");
    path.display().to_string()
}

#[test]
fn haproxy_accepts_its_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = environment::root().join("ops/proxy/haproxy.cfg");
    let text = fs::read_to_string(path).expect("the configuration");
    let shipped = "/etc/haproxy/turnwire.pem";
    assert!(text.contains(shipped));
    let config = folder.path().join("haproxy.cfg");
    let text = text.replace(shipped, &certificate(folder.path()));
    fs::write(&config, text).expect("written");
    let checked = Command::new(environment::proxies().join("haproxy"))
        .args(["-c", "-V", "-f"])
        .arg(&config)
        .output()
        .expect("haproxy");
    let said = environment::text(&checked);
    assert!(checked.status.success(), "{said}");
    assert!(!said.contains("WARNING"), "{said}");
}

#[test]
fn caddy_accepts_its_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let checked = Command::new(environment::proxies().join("caddy"))
        .args(["adapt", "--adapter", "caddyfile", "--validate", "--config"])
        .arg(environment::root().join("ops/proxy/Caddyfile"))
        // It keeps its state in the home folder.
        .env("HOME", folder.path())
        .env("XDG_DATA_HOME", folder.path())
        .env("XDG_CONFIG_HOME", folder.path())
        .output()
        .expect("caddy");
    let said = environment::text(&checked);
    assert!(checked.status.success(), "{said}");
    assert!(said.contains("\"flush_interval\":-1"), "{said}");
}
