//! The client side of a connection: it answers pings and rejects every other request of a server.
//! Its capabilities say so, by offering nothing.

use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientResult, ErrorCode, ErrorData, Implementation,
    ProtocolVersion, ServerNotification, ServerRequest,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient, Service};

/// An MCP client without capabilities.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientHandler;

impl Service<RoleClient> for ClientHandler {
    async fn handle_request(
        &self,
        request: ServerRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        match request {
            ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
            _ => Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                "this client does not offer that",
                None,
            )),
        }
    }

    async fn handle_notification(
        &self,
        _: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        let client = Implementation::new("turnwire", env!("CARGO_PKG_VERSION"));
        // The newest version with an `initialize` handshake, which every server supports.
        ClientConfig::new(ClientCapabilities::default(), client)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
