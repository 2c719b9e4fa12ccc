//! The credentials of data services: headers and client certificates, read where the pack says.

use std::sync::Arc;

use turnwire_dial::{Dialer, RequestHeaders};
use turnwire_pack::DataService;
use turnwire_tool::ServiceCredentials;
use zeroize::Zeroizing;

use super::ServerVariables;
use super::keys::certificate::dialer_with;
use super::keys::key;

/// The credentials of `service`, or why it has none. No message has a key.
pub(super) fn credentials(
    service: &DataService,
    variables: &ServerVariables,
    dialer: &Dialer,
) -> Result<ServiceCredentials, String> {
    let plain = service.headers.iter();
    let plain = plain.map(|(name, value)| (name.as_str(), value.as_str()));
    let mut headers = RequestHeaders::new(plain).map_err(|error| error.to_string())?;
    for header in &service.key_headers {
        let key = key(&header.key, variables).map_err(|error| error.to_string())?;
        let Some(key) = key else { continue };
        let value = Zeroizing::new(format!("{}{}", header.prefix, key.expose()));
        let header = RequestHeaders::new([(header.name.as_str(), value.as_str())]);
        headers = headers.with(header.map_err(|error| error.to_string())?);
    }
    let certificate = service.client_certificate.as_ref();
    let own = certificate.map(|certificate| dialer_with(certificate, dialer));
    Ok(ServiceCredentials {
        headers,
        dialer: own.transpose()?.map(Arc::new),
    })
}
