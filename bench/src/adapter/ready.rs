//! A call of a model whose answer is already here: all that `Remote` does but the waiting.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use turnwire_event::port::BoxFuture;
use turnwire_event::{ContentBlock, Role};
use turnwire_model::{
    CallTimeouts, Delta, ModelError, ModelMessage, ModelParams, ModelProvider as _, ModelRequest,
    ModelTransport, RemoteProvider, TransportRequest, TransportResponse,
};
use turnwire_pack::DialectName;

/// A transport that has the answer.
struct ReadyTransport(Arc<[Bytes]>);

impl ModelTransport for ReadyTransport {
    fn open(
        &self,
        _: TransportRequest,
    ) -> BoxFuture<'static, Result<TransportResponse, ModelError>> {
        let pieces = Arc::clone(&self.0);
        let pieces = (0..pieces.len()).map(move |at| Ok(pieces[at].clone()));
        Box::pin(std::future::ready(Ok(TransportResponse {
            status: 200,
            retry_after: None,
            is_event_stream: true,
            chunks: stream::iter(pieces).boxed(),
        })))
    }
}

/// A call that can be made again and again.
pub struct ReadyCall {
    remote: RemoteProvider,
    request: ModelRequest,
}

impl ReadyCall {
    /// The call that is answered with these pieces.
    pub(super) fn new(dialect: DialectName, pieces: Vec<Bytes>) -> Self {
        let message = ModelMessage::new(Role::User, vec![ContentBlock::text("Any tents?")]);
        Self {
            remote: RemoteProvider::new(
                "bench",
                turnwire_model::models::dialect_for(dialect),
                Arc::new(ReadyTransport(pieces.into())),
                ModelParams::default(),
                CallTimeouts::default(),
                None,
            ),
            request: ModelRequest {
                model: "bench:model".to_owned(),
                agent: "orchestrator".to_owned(),
                call: 1,
                attempt: 1,
                locale: "en".to_owned(),
                system: None,
                messages: vec![Arc::new(message)],
                tools: [].into(),
            },
        }
    }

    /// Makes the call and gives every delta to `said`.
    pub async fn hear(&self, mut said: impl FnMut(Delta)) -> io::Result<()> {
        let mut deltas = self.remote.stream(self.request.clone());
        while let Some(delta) = deltas.next().await {
            said(delta.map_err(io::Error::other)?);
        }
        Ok(())
    }
}
