//! Responses: each thing a stream can say.

use std::collections::VecDeque;

use serde_json::{Value, json};
use turnwire_event::code::LlmErrorClass;
use turnwire_model::dialect::openai_responses::OpenAiResponses;
use turnwire_model::{Again, Delta, Dialect as _, Frame, ModelError};

use crate::support::{RESPONSES, Told, decode, fixture, lines, steps};

fn told(name: &str) -> Vec<String> {
    lines(decode(
        &OpenAiResponses,
        [fixture(RESPONSES, name).as_bytes()],
    ))
}

fn event(kind: &str, fields: Value) -> String {
    let mut event = json!({"type": kind});
    for (name, value) in fields.as_object().expect("fields") {
        event[name] = value.clone();
    }
    event.to_string()
}

fn text(place: u32, part: u32, words: &str) -> String {
    let fields = json!({"output_index": place, "content_index": part, "delta": words});
    event("response.output_text.delta", fields)
}

fn completed() -> String {
    event(
        "response.completed",
        json!({"response": {"status": "completed"}}),
    )
}

/// These events, and then the end.
fn whole(events: &[String]) -> Told {
    let end = completed();
    let frames: Vec<&String> = events.iter().chain([&end]).collect();
    steps(&OpenAiResponses, &frames)
}

fn malformed() -> ModelError {
    LlmErrorClass::Provider.into()
}

#[test]
fn a_recorded_answer_of_a_server_that_tells_no_places() {
    let told = told("recorded_plain");
    assert_eq!(told[0], "begun resp_nu6fnAbUX8hRzwBp8OvdbhE4TTREaM64");
    assert_eq!(told[1..4], ["0 text A", "0 text  lighthouse", "0 text  is"]);
    let words: String = told
        .iter()
        .filter_map(|l| l.strip_prefix("0 text "))
        .collect();
    assert!(
        words.starts_with("A lighthouse is a beacon of hope"),
        "{words}"
    );
    assert!(words.ends_with("to the St. John"), "said once: {words}");
    assert_eq!(
        told[told.len() - 2..],
        [
            r#"0 keep {"id":"msg_mzSlTdDbQ66PMAGd0lsFu8bed0k8xOna","type":"message"}"#,
            "stop EndTurn 30+30=60 reasoning 0 cached 29",
        ]
    );
}

#[test]
fn the_same_conversation_as_in_the_other_dialects() {
    assert_eq!(
        told("conversation"),
        [
            "begun resp_one",
            "0 text Ich sehe ",
            "0 text nach: Grö",
            "0 text ße 🚢",
            "0 text …",
            r#"0 keep {"id":"msg_one","type":"message"}"#,
            "1 tool get_weather call_one",
            r#"1 input {"city""#,
            r#"1 input : "Kö"#,
            r#"1 input ln", "unit""#,
            r#"1 input : "celsius"}"#,
            r#"1 keep {"type":"function_call","item_id":"fc_one","id":"call_one"}"#,
            "1 end",
            "stop ToolUse 64+31=95 reasoning 0 cached 24",
        ]
    );
}

#[test]
fn reasoning_is_shown_in_paragraphs_and_kept_sealed() {
    let told = told("reasoning");
    let sealed = json!({
        "encrypted_content": "gAAAAABencrypted==",
        "id": "rs_a",
        "summary": [
            {"type": "summary_text", "text": "Two cities, so two calls."},
            {"type": "summary_text", "text": "Both at once."},
        ],
        "type": "reasoning",
    });
    let hidden = json!({
        "encrypted_content": "gAAAAABhidden==", "id": "rs_b", "summary": [], "type": "reasoning",
    });
    assert_eq!(
        told[..9],
        [
            "begun resp_two",
            "0 thinking Two cities, ",
            "0 thinking so two calls.",
            "0 thinking \n\nBoth at once.",
            &format!("0 keep {sealed}"),
            &format!("1 keep {hidden}"),
            "2 text I look ",
            "2 text at both.",
            r#"2 keep {"id":"msg_two","phase":"commentary","type":"message"}"#,
        ]
    );
    let kept =
        r#"4 keep {"namespace":"travel","type":"function_call","item_id":"fc_b","id":"call_b"}"#;
    assert!(told.contains(&kept.to_owned()), "{told:#?}");
    let stop = "stop ToolUse 120+80=200 reasoning 48 cached 64";
    assert_eq!(told.last().map(String::as_str), Some(stop));
}

#[test]
fn tokens_written_to_the_cache_are_told_at_the_end() {
    let mut decoder = OpenAiResponses.decoder();
    let mut out = VecDeque::new();
    let usage = json!({"input_tokens": 9, "input_tokens_details": {"cache_write_tokens": 7}});
    let data = event("response.completed", json!({"response": {"usage": usage}}));
    let frame = Frame {
        event: None,
        data: &data,
    };
    assert_eq!(decoder.cache_written_tokens(), 0);
    decoder.step(frame, &mut out).expect("an end");
    assert_eq!(decoder.cache_written_tokens(), 7);
}

#[test]
fn s3_066_interleaved_calls_are_told_apart() {
    assert_eq!(
        told("interleaved"),
        [
            "begun resp_three",
            "0 tool get_weather call_a",
            "1 tool get_weather call_b",
            r#"0 input {"city":"#,
            r#"1 input {"city":"#,
            r#"1 input "Rome"}"#,
            r#"0 input "Paris"}"#,
            r#"1 keep {"type":"function_call","item_id":"fc_b","id":"call_b"}"#,
            "1 end",
            r#"0 keep {"type":"function_call","item_id":"fc_a","id":"call_a"}"#,
            "0 end",
            "stop ToolUse 10+9=19 reasoning 0 cached 0",
        ]
    );
}

#[test]
fn s3_065_items_go_out_in_the_order_of_their_places() {
    assert_eq!(
        told("out_of_order"),
        [
            "begun resp_four",
            "0 text First ",
            "0 text me.",
            "1 text And me.",
            r#"0 keep {"id":"msg_a","type":"message"}"#,
            r#"1 keep {"id":"msg_a","type":"message"}"#,
            "2 tool get_weather call_a",
            r#"2 input {"city":"#,
            r#"2 input "Paris"}"#,
            r#"2 keep {"type":"function_call","item_id":"fc_a","id":"call_a"}"#,
            "2 end",
            "stop ToolUse 10+9=19 reasoning 0 cached 0",
        ]
    );
}

#[test]
fn a_place_that_never_comes_is_waited_for_until_the_end() {
    let told = whole(&[text(2, 0, "c"), text(1, 0, "b")]);
    assert_eq!(lines(told)[..2], ["0 text b", "1 text c"]);
}

#[test]
fn what_waits_for_a_place_is_bounded() {
    for words in ["x".to_owned(), "x".repeat(100_000)] {
        let mut decoder = OpenAiResponses.decoder();
        let mut out = VecDeque::new();
        let data = text(1, 0, &words);
        let mut steps = 0;
        while out.is_empty() {
            let frame = Frame {
                event: None,
                data: &data,
            };
            decoder.step(frame, &mut out).expect("words");
            steps += 1;
            assert!(steps < 1000, "held without a bound");
        }
        assert_eq!(out.len(), steps, "nothing is lost");
        // From now on it goes out at once, also what comes late for the place before.
        let late = text(0, 0, "late");
        let frame = Frame {
            event: None,
            data: &late,
        };
        out.clear();
        decoder.step(frame, &mut out).expect("words");
        let expected = Delta::Text {
            block: 1,
            text: "late".into(),
        };
        assert_eq!(out, [expected]);
    }
}

#[test]
fn s3_064_what_is_not_streamed_is_said_whole_and_once() {
    assert_eq!(
        told("whole_items"),
        [
            "begun resp_five",
            "0 thinking Short.",
            r#"0 keep {"encrypted_content":"gAAAA==","id":"rs_a","summary":[{"type":"summary_text","text":"Short."}],"type":"reasoning"}"#,
            "1 text All at once.",
            r#"1 keep {"id":"msg_a","type":"message"}"#,
            "2 tool get_weather call_a",
            r#"2 input {"city":"Paris"}"#,
            r#"2 keep {"type":"function_call","item_id":"fc_a","id":"call_a"}"#,
            "2 end",
            "stop ToolUse 10+9=19 reasoning 0 cached 0",
        ]
    );
}

#[test]
fn an_answer_that_comes_only_at_the_end_is_read_there() {
    let output = json!([
        {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Late."}]},
        {"type": "function_call", "call_id": "c", "name": "now", "arguments": "{}"},
    ]);
    let response = json!({"id": "r", "status": "completed", "output": output});
    let frames = [event("response.completed", json!({"response": response}))];
    assert_eq!(
        lines(steps(&OpenAiResponses, &frames)),
        [
            "begun r",
            "0 text Late.",
            r#"0 keep {"id":"m","type":"message"}"#,
            "1 tool now c",
            "1 input {}",
            r#"1 keep {"type":"function_call","id":"c"}"#,
            "1 end",
            "stop ToolUse 0+0=0 reasoning 0 cached 0",
        ]
    );
}

#[test]
fn items_of_hosted_tools_are_kept_and_refusals_are_words() {
    assert_eq!(
        told("hosted_tool_and_refusal"),
        [
            "begun resp_six",
            r#"0 keep {"action":{"type":"search","query":"ports"},"id":"ws_a","status":"completed","type":"web_search_call"}"#,
            "1 text I can say this.",
            "2 text But not ",
            "2 text that.",
            r#"1 keep {"id":"msg_a","type":"message"}"#,
            r#"2 keep {"id":"msg_a","type":"message","refusal":true}"#,
            "stop MaxTokens 10+9=19 reasoning 0 cached 0",
        ]
    );
}

#[test]
fn a_server_that_tells_no_places_and_ends_its_items_last() {
    let told = told("without_places");
    let spoken = told.iter().filter(|line| !line.contains("keep"));
    let spoken: Vec<&str> = spoken.map(String::as_str).collect();
    assert_eq!(
        spoken,
        [
            "begun resp_eight",
            "0 thinking The user ",
            "0 thinking wants both.",
            "1 text I ",
            "1 text look.",
            "2 tool get_weather fc_1",
            r#"2 input {"city":"#,
            r#"2 input "Paris"}"#,
            "3 tool get_weather fc_2",
            r#"3 input {"city":"#,
            r#"3 input "Rome"}"#,
            "2 end",
            "3 end",
            "stop ToolUse 30+20=50 reasoning 0 cached 29",
        ]
    );
}

#[test]
fn a_call_that_nobody_ends_is_ended_with_the_answer() {
    let item = json!({"type": "function_call", "call_id": "c", "name": "now"});
    let told = whole(&[event("response.output_item.added", json!({"item": item}))]);
    assert_eq!(
        lines(told),
        [
            "0 tool now c",
            r#"0 keep {"type":"function_call","id":"c"}"#,
            "0 end",
            "stop ToolUse 0+0=0 reasoning 0 cached 0",
        ]
    );
}

#[test]
fn a_call_without_a_name_is_malformed() {
    let item = json!({"type": "function_call", "call_id": "c", "arguments": "{}"});
    let added = event("response.output_item.added", json!({"item": item}));
    assert_eq!(whole(&[added]).1, Some(malformed()));
    let done = event("response.output_item.done", json!({"item": item}));
    assert_eq!(whole(&[done]).1, Some(malformed()));
}

#[test]
fn why_an_answer_is_cut_decides_how_it_ends() {
    let cut = |reason: &str, said: bool| {
        let details = json!({"reason": reason});
        let response = json!({"status": "incomplete", "incomplete_details": details});
        let end = event("response.incomplete", json!({"response": response}));
        let mut frames = vec![end];
        if said {
            frames.insert(0, text(0, 0, "Half"));
        }
        steps(&OpenAiResponses, &frames)
    };
    let ending = |told: Told| lines(told).last().cloned().expect("an end");
    assert!(ending(cut("max_output_tokens", true)).starts_with("stop MaxTokens"));
    assert!(ending(cut("unheard_of", true)).starts_with("stop MaxTokens"));
    assert!(ending(cut("content_filter", true)).starts_with("stop EndTurn"));
    assert_eq!(cut("content_filter", false).1, Some(malformed()));
}

#[test]
fn a_failed_answer_says_why() {
    let (deltas, error) = decode(&OpenAiResponses, [fixture(RESPONSES, "failed").as_bytes()]);
    assert_eq!(deltas.len(), 1, "the answer had begun");
    assert_eq!(error, Some(ModelError::passing(LlmErrorClass::Provider)));

    let limited = json!({"status": "failed", "error": {"code": "rate_limit_exceeded"}});
    let frames = [event("response.failed", json!({"response": limited}))];
    let error = steps(&OpenAiResponses, &frames).1;
    assert_eq!(error, Some(ModelError::passing(LlmErrorClass::RateLimited)));

    for (frame, expected) in [
        (
            json!({"type": "error", "code": "invalid_prompt", "message": "m"}),
            Again::Never,
        ),
        (
            json!({"type": "error", "error": {"type": "server_error"}}),
            Again::Soon,
        ),
        (
            json!({"error": {"code": 500, "message": "m", "type": "server_error"}}),
            Again::Soon,
        ),
    ] {
        let error = steps(&OpenAiResponses, &[frame.to_string()]).1;
        assert_eq!(error.map(|error| error.again), Some(expected), "{frame}");
    }
}

#[test]
fn a_stream_without_its_end_is_broken() {
    let begun = event("response.created", json!({"response": {"id": "r"}}));
    let error = steps(&OpenAiResponses, &[begun]).1;
    assert_eq!(error, Some(ModelError::passing(LlmErrorClass::Transport)));
    let error = steps(&OpenAiResponses, &[text(0, 0, "Half")]).1;
    assert_eq!(error, Some(LlmErrorClass::Transport.into()));
    // The word that ends a chat is not the end of a response.
    let error = steps(&OpenAiResponses, &["[DONE]"]).1;
    assert_eq!(error, Some(ModelError::passing(LlmErrorClass::Transport)));
}

#[test]
fn what_nobody_knows_is_passed_over() {
    let told = whole(&[
        event(
            "response.unheard_of",
            json!({"delta": {"deep": [1]}, "output_index": "x"}),
        ),
        event("response.audio.delta", json!({"delta": "UklGR"})),
        event(
            "response.output_item.added",
            json!({"output_index": 0, "item": {"type": "new"}}),
        ),
        event(
            "response.output_item.done",
            json!({"output_index": 0, "item": {"type": 5}}),
        ),
        text(1, 0, "Still here."),
        event(
            "response.output_text.annotation.added",
            json!({"annotation": {"type": "x"}}),
        ),
    ]);
    assert_eq!(lines(told)[0], "0 text Still here.");
}

#[test]
fn a_frame_that_is_no_event_is_malformed() {
    let no_delta = event("response.output_text.delta", json!({"output_index": 0}));
    let far = text(u32::MAX, 0, "x");
    let call = json!({"output_index": 0, "item": {"type": "function_call", "name": "now"}});
    let call = event("response.output_item.added", call);
    for frames in [
        vec!["{".to_owned()],
        vec!["7".to_owned()],
        vec![r#"{"type":"response.created","response":7}"#.to_owned()],
        vec![no_delta],
        vec![far],
        vec![call, text(0, 0, "words in a call")],
    ] {
        assert_eq!(
            steps(&OpenAiResponses, &frames).1,
            Some(malformed()),
            "{frames:?}"
        );
    }
}

#[test]
fn an_answer_has_a_bounded_number_of_items_and_parts() {
    let items: Vec<String> = (0..2000).map(|n| text(n, 0, "x")).collect();
    assert_eq!(whole(&items).1, Some(malformed()));
    let parts: Vec<String> = (0..2000).map(|n| text(0, n, "x")).collect();
    assert_eq!(whole(&parts).1, Some(malformed()));
    let sections = (0..2000).map(|n| {
        let fields = json!({"output_index": 0, "summary_index": n, "delta": "x"});
        event("response.reasoning_summary_text.delta", fields)
    });
    assert_eq!(whole(&sections.collect::<Vec<_>>()).1, Some(malformed()));
}

#[test]
fn an_item_too_large_to_keep_is_not_kept() {
    let huge = "x".repeat(300 << 10);
    let item = json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": huge});
    let told = whole(&[event("response.output_item.done", json!({"item": item}))]);
    assert_eq!(lines(told), ["stop EndTurn 0+0=0 reasoning 0 cached 0"]);
}

#[test]
fn frames_behind_the_end_say_nothing() {
    let told = steps(
        &OpenAiResponses,
        &[completed(), text(0, 0, "x"), "{".to_owned()],
    );
    assert_eq!(lines(told), ["stop EndTurn 0+0=0 reasoning 0 cached 0"]);
}
