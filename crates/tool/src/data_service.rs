//! Data services (CCS): the [`Connector`] is the only way from a tool to a service.
//!
//! ```text
//! EnricherTool ── params ──▶ Connector ── request_body ──▶ ServiceTransport
//!      ▲                         │                                 │
//!      ╰──── ServiceData ◀── verdict ◀── VerifiedEnvelope ◀── Envelope
//! ```
//! Only the payload of an envelope leaves this module, and only if the envelope is for the
//! principal of the turn.

mod registry;
mod envelope_fields;
mod envelope;
mod request;
mod transport;
mod verdict;
mod service_span;
mod metrics;
mod connector;
mod tool;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
#[cfg(test)]
mod contract;

pub use connector::{Connector, CredentialLookup, McpServiceLookup};
pub use envelope::{EnvelopeClaim, EnvelopeVerifier, NoVerifier, PrincipalMismatch};
pub use registry::ConnectorError;
pub use transport::{ServiceCredentials, ServiceRequest, ServiceTransport};

pub(crate) use registry::{EnricherType, id_in};
#[cfg(test)]
pub(crate) use service_span::ServiceTrace;
pub(crate) use tool::EnricherTool;
#[cfg(test)]
pub(crate) use transport::rest_transport;
pub(crate) use transport::{http_url, response_limits};
#[cfg(test)]
pub(crate) use verdict::ServiceData;
