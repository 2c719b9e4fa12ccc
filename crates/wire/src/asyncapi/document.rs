//! Generates the AsyncAPI document from the schemas of the frames.

use serde_json::{Map, Value, json};

use super::channel::FrameMessages;
use crate::pc3::cursor::FRAME_ID_PATTERN;
use crate::pc3::{self, WireVersion};
use crate::session::{SessionCloseReason, schema};

const DESCRIPTION: &str = "\
The streams of a Turnwire server. The session wire is a WebSocket with JSON text frames in both \
directions. The chat wire is a response of server-sent events: the payloads here are the `data` of \
its blocks, `event` is the type of the frame and `id` its position; after the last frame comes a \
block with the data `[DONE]`, which is not JSON, and comments may stand between blocks.\n\n\
Clients skip frames, events and members that they do not know. Sessions and turns are made over \
HTTP, which `/openapi.json` describes.";

/// What [`DOCUMENT`](super::DOCUMENT) is, made from the types again.
pub fn generate() -> Value {
    let client = FrameMessages::new("SessionClient", "type", &schema::client_frame());
    let server = FrameMessages::new("SessionServer", "type", &schema::server_frame());
    let chat: Vec<(String, FrameMessages)> = WireVersion::ALL
        .iter()
        .map(|version| {
            let wire = format!("Chat{}", version.as_str().replace('.', ""));
            let frames = FrameMessages::new(&wire, "event_type", &pc3::schema::frame(*version));
            (version.to_string(), frames)
        })
        .collect();
    let all = || {
        [&client, &server]
            .into_iter()
            .chain(chat.iter().map(|(_, frames)| frames))
    };
    let (mut messages, mut schemas) = (Map::new(), Map::new());
    for frames in all() {
        messages.extend(frames.messages.clone());
        schemas.extend(frames.schemas.clone());
    }
    schemas.sort_keys();
    let mut channels = Map::new();
    let mut operations = Map::new();
    channels.insert("session".to_owned(), session_channel(&client, &server));
    operations.insert(
        "receiveSessionFrame".to_owned(),
        operation("receive", "session", "A frame of a client.", &client),
    );
    operations.insert(
        "sendSessionFrame".to_owned(),
        operation("send", "session", "A frame of the server.", &server),
    );
    for (version, frames) in &chat {
        let suffix = version.replace('.', "");
        let (channel, resumed) = (format!("chat{suffix}"), format!("resumedChat{suffix}"));
        channels.insert(channel.clone(), chat_channel(version, frames));
        channels.insert(resumed.clone(), resumed_channel(version, frames));
        let about = format!("A frame of a turn, version {version}.");
        operations.insert(
            format!("sendChat{suffix}Frame"),
            operation("send", &channel, &about, frames),
        );
        let about = format!("A frame of a turn that the client does not have, version {version}.");
        operations.insert(
            format!("sendResumedChat{suffix}Frame"),
            operation("send", &resumed, &about, frames),
        );
    }
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Turnwire streams",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "contact": { "name": "Turnwire", "url": env!("CARGO_PKG_REPOSITORY") },
            "license": { "name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0" },
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": { "messages": messages, "schemas": schemas },
    })
}

fn operation(action: &str, channel: &str, summary: &str, frames: &FrameMessages) -> Value {
    json!({
        "action": action,
        "channel": { "$ref": format!("#/channels/{channel}") },
        "summary": summary,
        "messages": frames.in_channel(channel),
    })
}

fn session_channel(client: &FrameMessages, server: &FrameMessages) -> Value {
    let mut messages = client.in_components();
    messages.extend(server.in_components());
    json!({
        "address": "/sessions/{id}/stream",
        "title": "A session",
        "description": "Follows a session over a WebSocket; `ws_url` of `GET /sessions/{id}` is the whole address. \
                        A connection ends with a close code and a JSON reason; `x-close-codes` lists them. With \
                        the advice `resume` reconnect with the last id, with `fix_first` mend the frames before, \
                        with `never` do not reconnect.",
        "parameters": { "id": { "description": "The session." } },
        "messages": messages,
        "bindings": { "ws": {
            "method": "GET",
            "query": {
                "type": "object",
                "required": ["attach"],
                "properties": {
                    "attach": { "type": "string", "description": "The attach token, which opens one connection." },
                },
            },
        } },
        "x-close-codes": close_codes(),
    })
}

/// The close codes as data.
fn close_codes() -> Vec<Value> {
    let reasons = SessionCloseReason::ALL.iter();
    let codes = reasons.map(|reason| {
        json!({
            "code": reason.code(),
            "name": reason.name(),
            "message": reason.message(),
            "reconnect": reason.reconnect().name(),
        })
    });
    codes.collect()
}

fn chat_channel(version: &str, frames: &FrameMessages) -> Value {
    json!({
        "address": "/chat/stream",
        "title": format!("A turn and its answer, version {version}"),
        "description": format!(
            "A POST request submits a turn; the response is its stream. The header `X-Wire-Version: {version}` selects the version."
        ),
        "messages": frames.in_components(),
        "bindings": { "http": {} },
    })
}

fn resumed_channel(version: &str, frames: &FrameMessages) -> Value {
    json!({
        "address": "/chat/{response_id}/stream",
        "title": format!("The rest of an answer, version {version}"),
        "description": format!(
            "A GET request goes on after the frame whose id is in the header `Last-Event-ID` (the pattern is `{FRAME_ID_PATTERN}`), \
             or begins with the first. The header `X-Wire-Version: {version}` selects the version."
        ),
        "parameters": { "response_id": { "description": "The turn, by its response id." } },
        "messages": frames.in_components(),
        "bindings": { "http": {} },
    })
}
