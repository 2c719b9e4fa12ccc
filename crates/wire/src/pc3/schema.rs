//! JSON Schemas of the frames of the chat wire: the `data` of a block, for each version.

use schemars::generate::Contract;
use serde_json::{Value, json};
use turnwire_event::body::data::{DataLoaded, DataLoading};
use turnwire_event::code::CancelCode;
use turnwire_event::{EpisodeId, Position, Timestamp, TurnResponseId};

use super::failure::FailureDetail;
use super::project::PausedFields;
use super::tool_call::ToolCallFields;
use super::version::WireVersion;
use crate::frame_schema::FrameSchemas;

/// The schema of a frame in `version`.
pub fn frame(version: WireVersion) -> Value {
    let mut frames = FrameSchemas::new("event_type", Contract::Serialize);
    frames.envelope(
        "version",
        json!({ "type": "string", "const": version.as_str() }),
    );
    let timestamp = frames.of::<Timestamp>();
    frames.envelope("timestamp", timestamp);
    let response_id = frames.of::<TurnResponseId>();
    frames.envelope("response_id", response_id);
    add_content(&mut frames);
    add_tools(&mut frames);
    if version == WireVersion::V05 {
        add_status(&mut frames);
    }
    add_data(&mut frames);
    add_mcp(&mut frames);
    add_end(&mut frames, version);
    match version {
        WireVersion::V04 => add_final_errors(&mut frames),
        WireVersion::V05 => add_errors(&mut frames),
    }
    let title = format!("ChatFrame{}", version.as_str().replace('.', ""));
    let about = format!("A frame of the chat wire, version {version}.");
    frames.finish(&title, &about)
}

fn add_content(frames: &mut FrameSchemas) {
    frames.add_fields("response_id", "The first frame of a turn.", &[], &[]);
    let episode = frames.of::<EpisodeId>();
    let fields = [("episode_id", episode)];
    frames.add_fields("episode", "The episode of the turn.", &fields, &[]);
    frames.add_fields(
        "thinking",
        "Reasoning of the model before its first text; without content when the model is called.",
        &[("role", constant("reasoning"))],
        &[("content", text())],
    );
    let chunk = [("type", constant("chunk")), ("chunk", text())];
    let about = "Reasoning of the model after its first text: the next part.";
    frames.add_fields("reasoning", about, &chunk, &[]);
    frames.add_fields("text", "The next part of the answer.", &chunk, &[]);
}

fn add_tools(frames: &mut FrameSchemas) {
    let call = [("tool_call", frames.of::<ToolCallFields>())];
    frames.add_fields("tool_call", "A tool starts.", &call, &[]);
    let about = "A tool has ended, with or without success.";
    frames.add_fields("tool_completed", about, &call, &[]);
}

fn add_status(frames: &mut FrameSchemas) {
    let data = json!({
        "type": "object",
        "required": ["event_id", "message"],
        "properties": {
            "event_id": { "description": "The status id; of a group, the first.", "type": "string" },
            "event_ids": {
                "description": "The status ids of a group.",
                "type": "array",
                "items": text(),
            },
            "message": { "description": "A sentence in the user's language.", "type": "string" },
        },
    });
    frames.add_fields("status", "Progress.", &[("data", data)], &[]);
}

fn add_data(frames: &mut FrameSchemas) {
    let loading = frames.of::<DataLoading>();
    let loaded = frames.of::<DataLoaded>();
    let about = "A placeholder of a collection.";
    frames.add_fields("data_loading", about, &[("data", loading)], &[]);
    frames.add_fields(
        "data_loaded",
        "The items of a collection.",
        &[("data", loaded)],
        &[],
    );
    let call = frames.of::<ToolCallFields>();
    let chunk = json!({ "description": "The component, as its tool rendered it." });
    let fields = [("chunk", chunk), ("tool_call", call)];
    frames.add_fields("component", "A component to show.", &fields, &[]);
}

fn add_mcp(frames: &mut FrameSchemas) {
    let server = ("server", text());
    let about = "An MCP server is asked for its tools.";
    frames.add_fields(
        "mcp_list_tools_start",
        about,
        std::slice::from_ref(&server),
        &[],
    );
    frames.add_fields(
        "mcp_list_tools_completed",
        "An MCP server has listed its tools.",
        &[server.clone(), ("tool_count", count())],
        &[],
    );
    let about = "An MCP server is connected.";
    frames.add_fields(
        "mcp_session_start",
        about,
        std::slice::from_ref(&server),
        &[],
    );
    let number = json!({ "type": "number" });
    frames.add_fields(
        "mcp_session_progress",
        "Progress of a call of an MCP server.",
        &[server, ("progress", number.clone())],
        &[("total", number)],
    );
}

fn add_end(frames: &mut FrameSchemas, version: WireVersion) {
    let tokens = [
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "reasoning_tokens",
        "cached_tokens",
    ];
    let tokens = tokens.map(|name| (name, count()));
    frames.add_fields(
        "usage",
        "The tokens of the turn, before its last frame.",
        &tokens,
        &[],
    );
    let paused = match version {
        WireVersion::V04 => Vec::new(),
        WireVersion::V05 => vec![("paused", frames.of::<PausedFields<'_>>())],
    };
    let about = "The turn has ended without a failure, or is paused.";
    frames.add_fields("completed", about, &[], &paused);
}

/// Version 0.4: every error ends the turn, and a cancel is an error.
fn add_final_errors(frames: &mut FrameSchemas) {
    let codes = [
        "INTERNAL_ERROR",
        "RATE_LIMIT_ERROR",
        "IDLE_TIMEOUT",
        "REQUEST_CANCELLED",
    ];
    let error = coded(&json!({ "type": "string", "enum": codes }));
    let is_final = json!({ "type": "boolean", "const": true });
    let fields = [("error", error), ("is_final", is_final)];
    frames.add_fields(
        "error",
        "The turn has failed or was cancelled.",
        &fields,
        &[],
    );
}

fn add_errors(frames: &mut FrameSchemas) {
    let cancel = coded(&frames.of::<CancelCode>());
    let position = frames.of::<Position>();
    let kept = json!({
        "description": "After a crash: the last event whose text is stored; the text of later frames is lost.",
        "allOf": [position],
    });
    let kept = [("kept_until", kept)];
    frames.add_fields(
        "cancelled",
        "The turn was cancelled.",
        &[("error", cancel)],
        &kept,
    );
    let error = frames.of::<FailureDetail<'_>>();
    let is_final = json!({
        "description": "True if the failure ends the turn.",
        "type": "boolean",
    });
    let fields = [("error", error), ("is_final", is_final)];
    frames.add_fields(
        "error",
        "A failure, of the turn or of a part of it.",
        &fields,
        &kept,
    );
}

fn coded(code: &Value) -> Value {
    json!({ "type": "object", "required": ["code"], "properties": { "code": code } })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn constant(value: &str) -> Value {
    json!({ "type": "string", "const": value })
}
