//! The interceptor without a policy: every event goes on as it came, without a stamp.

use turnwire_event::Render;
use turnwire_event::port::{Emission, Interceptor};

/// Lets everything through.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassThrough;

impl Interceptor for PassThrough {
    fn intercept(&self, _: &mut Emission) -> Option<Render> {
        None
    }
}

#[cfg(test)]
mod tests {
    use turnwire_event::body::route::Decided;
    use turnwire_event::body::session::Closed;
    use turnwire_event::body::stream::{TextDelta, ThinkingDelta};
    use turnwire_event::row::NewMessage;
    use turnwire_event::{Actor, Body, ContentBlock, MessageId, Role, Ulid};

    use super::*;

    #[test]
    fn nothing_is_changed_and_nothing_is_stamped() {
        let message_id = MessageId(Ulid(1));
        let bodies = [
            Body::TextDelta(TextDelta {
                message_id,
                content_block_index: 3,
                text: "\u{1b}[31m<b>words</b>".into(),
            }),
            Body::ThinkingDelta(ThinkingDelta {
                message_id,
                content_block_index: 0,
                text: String::new(),
                signature: Some("seal".into()),
                after_text: true,
            }),
            Body::RouteDecided(Decided {
                model: "scripted:default".into(),
                routing_policy_version: "builtin-1".into(),
                reason: "only model".into(),
                candidates: vec!["another".into()],
            }),
            Body::SessionClosed(Closed {
                reason: "done".into(),
            }),
        ];
        for body in bodies {
            let before = Emission {
                actor: Actor::tool("echo"),
                body,
                message: Some(NewMessage {
                    id: message_id,
                    role: Role::Tool,
                    content: vec![ContentBlock::text("said with it")],
                    metadata: [("key".to_owned(), 1.into())].into_iter().collect(),
                }),
            };
            let mut after = before.clone();
            assert_eq!(PassThrough.intercept(&mut after), None);
            assert_eq!(after, before);
        }
    }
}
