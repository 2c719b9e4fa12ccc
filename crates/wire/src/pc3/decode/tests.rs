//! Frames read by a client: tolerant of what is new, strict about what is known.

use super::*;

const ENVELOPE: &str =
    r#""version":"0.5","timestamp":"2026-01-05T09:12:44.120Z","response_id":"resp_x""#;

fn read(event: &str, rest: &str) -> Result<Decoded, DecodeError> {
    decode(
        event,
        &format!("{{\"event_type\":\"{event}\",{ENVELOPE}{rest}}}"),
    )
}

fn payload(event: &str, rest: &str) -> Payload {
    match read(event, rest).expect("a frame") {
        Decoded::Frame(frame) => {
            assert_eq!(frame.response_id, "resp_x");
            assert_eq!(frame.version, "0.5");
            frame.payload
        }
        other @ (Decoded::Unknown(_) | Decoded::Done) => panic!("{other:?}"),
    }
}

#[test]
fn s1_008_unknown_types_and_fields_are_passed_over() {
    let unknown = Decoded::Unknown("zzz".into());
    assert_eq!(read("zzz", ",\"what\":1").expect("passed over"), unknown);
    assert_eq!(decode("zzz", "not json").expect("passed over"), unknown);
    let chunk = "hi".to_owned();
    let text = payload(
        "text",
        ",\"chunk\":\"hi\",\"type\":\"chunk\",\"new\":{\"a\":[1]}",
    );
    assert_eq!(text, Payload::Text { chunk });
    assert_eq!(
        payload("completed", ",\"event_type_2\":null"),
        Payload::Completed
    );
    let usage = payload("usage", ",\"total_tokens\":3,\"new_tokens\":4");
    let wanted = Usage {
        total_tokens: 3,
        ..Usage::default()
    };
    assert_eq!(usage, Payload::Usage(wanted));
}

#[test]
fn s1_101_an_error_that_does_not_say_is_the_end() {
    for (rest, ends) in [
        (",\"error\":{\"code\":\"X_NEW\"}", true),
        (",\"error\":{\"code\":\"X_NEW\"},\"is_final\":true", true),
        (
            ",\"error\":{\"code\":\"X_NEW\",\"more\":1},\"is_final\":false",
            false,
        ),
    ] {
        assert_eq!(payload("error", rest).is_terminal(), ends, "{rest}");
    }
}

#[test]
fn the_sentinel_is_no_frame_and_what_is_broken_is_an_error() {
    assert_eq!(decode("", "[DONE]").expect("the sentinel"), Decoded::Done);
    assert!(decode("text", "[DONE]").is_err());
    assert!(read("text", "").is_err(), "no chunk");
    assert!(decode("text", "{\"event_type\":\"text\",\"chunk\":\"\"}").is_err());
    let other = decode("text", &format!("{{\"event_type\":\"usage\",{ENVELOPE}}}"));
    assert!(matches!(other, Err(DecodeError::Names { .. })), "{other:?}");
}

#[test]
fn the_types_that_are_known_are_those_that_are_sent() {
    for mark in crate::pc3::Mark::ALL {
        assert!(KNOWN.contains(&mark.event_type()), "{mark:?}");
    }
}

#[test]
fn s1_008_frames_of_data_are_read_as_far_as_they_are_known() {
    let status = payload(
        "status",
        ",\"data\":{\"event_id\":\"a\",\"message\":\"A…\",\"icon\":\"x\"}",
    );
    let data = Status {
        event_id: "a".into(),
        event_ids: Vec::new(),
        message: "A…".into(),
    };
    assert_eq!(status, Payload::Status { data });
    let Payload::DataLoaded { data } = payload(
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
        Payload::Component {
            chunk,
            tool_call: None
        }
    );
    let Payload::McpSessionProgress(server) =
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

#[test]
fn s1_092_a_client_reads_what_failed_of_several() {
    let Payload::Error { error, is_final } = payload(
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
