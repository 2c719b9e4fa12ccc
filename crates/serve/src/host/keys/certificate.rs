//! Client certificates of data services, read where the pack says. No message has anything of a file.

use std::path::Path;

use turnwire_dial::{DialError, Dialer};
use turnwire_pack::ClientCertificate;
use zeroize::Zeroizing;

/// The largest file of a certificate or a key: a chain of a few certificates has some kilobytes.
const PEM_BYTES_MAX: u64 = 65_536;

/// A dialer like `dialer` that identifies itself with `certificate`.
pub(in crate::host) fn dialer_with(
    certificate: &ClientCertificate,
    dialer: &Dialer,
) -> Result<Dialer, String> {
    let pem = read_pem(certificate)?;
    let dialer = dialer.with_client_certificate(&pem);
    dialer.map_err(|_| unusable(certificate))
}

/// Why `certificate` cannot be used.
pub(super) fn check(certificate: &ClientCertificate) -> Result<(), String> {
    let pem = read_pem(certificate)?;
    let checked: Result<(), DialError> = Dialer::check_client_certificate(&pem);
    checked.map_err(|_| unusable(certificate))
}

fn unusable(certificate: &ClientCertificate) -> String {
    let (cert, key) = (&certificate.cert_file, &certificate.key_file);
    format!("the files `{cert}` and `{key}` are not a certificate and its private key in PEM")
}

/// Both files, one after the other.
fn read_pem(certificate: &ClientCertificate) -> Result<Zeroizing<Vec<u8>>, String> {
    let (cert, key) = (read(&certificate.cert_file)?, read(&certificate.key_file)?);
    // Room for all bytes: a growing buffer would leave unwiped copies in memory.
    let mut pem = Zeroizing::new(Vec::with_capacity(cert.len() + key.len() + 1));
    pem.extend_from_slice(&cert);
    pem.push(b'\n');
    pem.extend_from_slice(&key);
    Ok(pem)
}

fn read(file: &str) -> Result<Zeroizing<Vec<u8>>, String> {
    let unreadable =
        |cause: std::io::Error| format!("the file `{file}` cannot be read: {}", cause.kind());
    let meta = std::fs::metadata(Path::new(file)).map_err(unreadable)?;
    if !meta.is_file() || meta.len() > PEM_BYTES_MAX {
        return Err(format!(
            "`{file}` is not a file of at most {PEM_BYTES_MAX} bytes"
        ));
    }
    std::fs::read(file).map(Zeroizing::new).map_err(unreadable)
}
