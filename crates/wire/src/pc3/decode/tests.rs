//! Decoding of frames: unknown parts are skipped, known parts are strict.

use super::*;

const ENVELOPE: &str =
    r#""version":"0.5","timestamp":"2026-01-05T09:12:44.120Z","response_id":"resp_x""#;

fn read(event: &str, fields: &str) -> Result<DecodedBlock, DecodeError> {
    decode(
        event,
        &format!("{{\"event_type\":\"{event}\",{ENVELOPE}{fields}}}"),
    )
}

fn payload(event: &str, fields: &str) -> FramePayload {
    match read(event, fields).expect("a frame") {
        DecodedBlock::Frame(frame) => {
            assert_eq!(frame.response_id, "resp_x");
            assert_eq!(frame.version, "0.5");
            frame.payload
        }
        other @ (DecodedBlock::Unknown(_) | DecodedBlock::Done) => panic!("{other:?}"),
    }
}

// S1-008
#[test]
fn unknown_types_and_fields_are_skipped() {
    let unknown = DecodedBlock::Unknown("zzz".into());
    assert_eq!(read("zzz", ",\"what\":1").expect("passed over"), unknown);
    assert_eq!(decode("zzz", "not json").expect("passed over"), unknown);
    let chunk = "hi".to_owned();
    let text = payload(
        "text",
        ",\"chunk\":\"hi\",\"type\":\"chunk\",\"new\":{\"a\":[1]}",
    );
    assert_eq!(text, FramePayload::Text { chunk });
    assert_eq!(
        payload("completed", ",\"event_type_2\":null"),
        FramePayload::Completed
    );
    let usage = payload("usage", ",\"total_tokens\":3,\"new_tokens\":4");
    let wanted = TokenUsagePayload {
        total_tokens: 3,
        ..TokenUsagePayload::default()
    };
    assert_eq!(usage, FramePayload::Usage(wanted));
}

// S1-101
#[test]
fn error_without_is_final_is_final() {
    for (fields, ends) in [
        (",\"error\":{\"code\":\"X_NEW\"}", true),
        (",\"error\":{\"code\":\"X_NEW\"},\"is_final\":true", true),
        (
            ",\"error\":{\"code\":\"X_NEW\",\"more\":1},\"is_final\":false",
            false,
        ),
    ] {
        assert_eq!(payload("error", fields).is_terminal(), ends, "{fields}");
    }
}

#[test]
fn sentinel_is_not_a_frame_and_broken_data_fails() {
    assert_eq!(
        decode("", "[DONE]").expect("the sentinel"),
        DecodedBlock::Done
    );
    assert!(decode("text", "[DONE]").is_err());
    assert!(read("text", "").is_err(), "no chunk");
    assert!(decode("text", "{\"event_type\":\"text\",\"chunk\":\"\"}").is_err());
    let other = decode("text", &format!("{{\"event_type\":\"usage\",{ENVELOPE}}}"));
    assert!(matches!(other, Err(DecodeError::Names { .. })), "{other:?}");
}

#[test]
fn every_projected_type_has_a_payload() {
    for kind in FrameKind::ALL {
        // A missing field is an error of the payload; an unknown type would be one of the enum.
        let error = read(kind.event_type(), "").err().map(|e| e.to_string());
        let is_unknown = error.is_some_and(|error| error.contains("unknown variant"));
        assert!(!is_unknown, "{kind:?}");
    }
}

// S1-008
#[test]
fn data_frames_with_unknown_fields_are_decoded() {
    let status = payload(
        "status",
        ",\"data\":{\"event_id\":\"a\",\"message\":\"A…\",\"icon\":\"x\"}",
    );
    let data = StatusPayload {
        event_id: "a".into(),
        event_ids: Vec::new(),
        message: "A…".into(),
    };
    assert_eq!(status, FramePayload::Status { data });
    let FramePayload::DataLoaded { data } = payload(
        "data_loaded",
        ",\"data\":{\"id\":\"d\",\"type\":\"t\",\"key\":{\"page\":2},\"items\":[{\"id\":1}],\"more\":true}",
    ) else {
        panic!("a collection");
    };
    assert_eq!((data.id.as_str(), data.items.len()), ("d", 1));
    let component = payload("component", ",\"chunk\":[1]");
    let chunk = serde_json::json!([1]);
    assert_eq!(
        component,
        FramePayload::Component {
            chunk,
            tool_call: None
        }
    );
    let FramePayload::McpSessionProgress(server) =
        payload("mcp_session_progress", ",\"server\":\"s\",\"x\":1")
    else {
        panic!("a server");
    };
    assert_eq!(server.server, "s");
    assert!(
        read("status", ",\"data\":{\"message\":\"A…\"}").is_err(),
        "no name"
    );
}

// S1-092
#[test]
fn failures_of_a_fan_out_are_decoded() {
    let FramePayload::Error { error, is_final } = payload(
        "error",
        ",\"error\":{\"code\":\"PARTIAL_FAN_OUT\",\"failed\":[{\"code\":\"SUB_AGENT_FAILED\",\
         \"sub_agent_id\":\"shop\"},{\"code\":\"X_NEW\",\"why\":1}]},\"is_final\":false",
    ) else {
        panic!("an error");
    };
    assert!(!is_final);
    let codes: Vec<&str> = error
        .failed
        .iter()
        .map(|failed| failed.code.as_str())
        .collect();
    assert_eq!(codes, ["SUB_AGENT_FAILED", "X_NEW"]);
}
