//! Mistakes in `providers.yaml`.

use super::*;
use crate::keys;
use crate::provider::{DialectName, KeyRef, ParamsDef};

const FILE: &str = "providers.yaml";

#[test]
fn a_provider_says_how_and_where_it_is_asked() {
    table(&[
        (
            Swap(FILE, "dialect: openai_chat", "dialect: openai-chat"),
            &[
                "providers.yaml:3:14: error: unknown dialect `openai-chat`, did you mean `openai_chat`?",
            ],
        ),
        (
            Swap(FILE, "dialect: openai_chat", "dialect: soap"),
            &[
                "providers.yaml:3:14: error: unknown dialect `soap`; write: one of `anthropic`, `openai_chat`, `openai_responses`, `gemini`",
            ],
        ),
        (
            Swap(FILE, "    dialect: openai_chat\n", ""),
            &["providers.yaml:3:5: error: `dialect` is missing; write: `dialect: openai_chat`"],
        ),
        (
            Swap(FILE, "    base_url: \"${LLM}\"\n", ""),
            &[
                "providers.yaml:3:5: error: `base_url` is missing; write: `base_url: http://127.0.0.1:8090/v1`",
            ],
        ),
        (
            Swap(FILE, "retries:", "retrys:"),
            &["providers.yaml:10:5: error: unknown field `retrys`, did you mean `retries`?"],
        ),
        (
            Swap(FILE, "dialect: anthropic", "kind: anthropic"),
            &[
                "providers.yaml:12:5: error: unknown field `kind`; write: one of `dialect`, `base_url`, `key`, `key_file`, `headers`, `params`, `models`, `timeouts`, `retries`",
            ],
        ),
        (
            Swap(FILE, "  thinker:", "  Think-er:"),
            &[
                "providers.yaml:11:3: error: `Think-er` is not a valid name of a provider; write: `think_er` (a to z, 0 to 9 and _, beginning with a letter, at most 48 characters)",
            ],
        ),
        (
            Swap(FILE, "  thinker:", "  scripted:"),
            &[
                "providers.yaml:11:3: error: `scripted` is built in and plays scripts; write: another name",
            ],
        ),
        (
            Swap(FILE, "  thinker:", "  local:"),
            &["providers.yaml:11:3: error: the key `local` is there twice; write: each key once"],
        ),
    ]);
}

#[test]
fn a_base_url_is_one_that_calls_can_be_put_behind() {
    table(&[
        (
            Swap(FILE, "\"${LLM}\"", "127.0.0.1:8090/v1"),
            &[
                "providers.yaml:4:15: error: the base_url does not begin with http:// or https://; write: `http://host:port` or `https://host`, with a path if there is one",
            ],
        ),
        (
            Swap(FILE, "\"${LLM}\"", "\"${LLM_URL}\""),
            &[
                "providers.yaml:4:15: error: the variable `LLM_URL` is not set; write: `${LLM_URL:-http://127.0.0.1:8090/v1}` for a default, or set LLM_URL before the start",
            ],
        ),
        (
            Swap(FILE, "\"${LLM}\"", "https://me:secret@a.example/v1"),
            &[
                "providers.yaml:4:15: error: the base_url has a user name in it; write: it without: a key is written as `key: ${NAME}`",
            ],
        ),
        (
            Swap(FILE, "\"${LLM}\"", "https://a.example/v1?api-version=1"),
            &[
                "providers.yaml:4:15: error: the base_url has `?` or `#` in it; write: it without a query: the path of the call is put after it",
            ],
        ),
        (
            Swap(FILE, "\"${LLM}\"", "http://169.254.169.254/v1"),
            &[
                "providers.yaml:4:15: error: the base_url is an address that is never asked: link-local, where machines keep their secrets; write: the address of the service",
            ],
        ),
        (
            Swap(FILE, "\"${LLM}\"", "http://127.0.0.1:8090"),
            &[
                "providers.yaml:4:15: warning: `/chat/completions` is put after this base_url, and most servers want `/v1` before it; write: it with `/v1` behind",
            ],
        ),
        (
            Swap(
                FILE,
                "\"${LLM}\"",
                "http://127.0.0.1:8090/v1/chat/completions",
            ),
            &[
                "providers.yaml:4:15: warning: `/chat/completions` is put after this base_url, which already has some of it; write: it without: what stands before `/chat/completions`",
            ],
        ),
        (
            Swap(
                FILE,
                "https://llm.example.com",
                "https://llm.example.com/v1/",
            ),
            &[
                "providers.yaml:13:15: warning: `/v1/messages` is put after this base_url, which already has some of it; write: it without: what stands before `/v1/messages`",
            ],
        ),
        (
            Swap(FILE, "https://llm.example.com", "http://llm.example.com"),
            &[
                "providers.yaml:13:15: warning: the key is sent unencrypted to another machine; write: `https://`, or no key",
            ],
        ),
        (
            Swap(FILE, "https://llm.example.com", "http://10.0.0.7:80"),
            &[],
        ),
        (Swap(FILE, "https://llm.example.com", "http://llm:80"), &[]),
    ]);
}

/// No line of these repeats what stands there: it may be a key.
#[test]
fn a_key_is_a_variable_or_a_file_and_never_the_key() {
    let literal = "a key is never written into a pack, only the variable that has it";
    let told_of = |key: &str| told(&[Swap(FILE, "${LOCAL_KEY}", key)]);
    for key in ["sk-abc", "hunter2", "AKIAIOSFODNN7EXAMPLE", "x${LOCAL_KEY}"] {
        let write = "write: `key: ${NAME}`, or `key_file:` with a path";
        let expected = format!("providers.yaml:5:10: error: {literal}; {write}");
        assert_eq!(told_of(key), [expected], "{key}");
    }
    for key in ["LOCAL_KEY", "$LOCAL_KEY"] {
        let write = "write: `key: ${LOCAL_KEY}`, or `key_file:` with a path";
        let expected = format!("providers.yaml:5:10: error: {literal}; {write}");
        assert_eq!(told_of(key), [expected], "{key}");
    }
    table(&[
        (
            Swap(FILE, "${LOCAL_KEY}", "\"${LOCAL_KEY:-sk-abc}\""),
            &[
                "providers.yaml:5:10: error: a key cannot have a default: it would be in the pack; write: `key: ${LOCAL_KEY}`",
            ],
        ),
        (
            Swap(FILE, "${LOCAL_KEY}", "\"${LOCAL KEY}\""),
            &[
                "providers.yaml:5:10: error: this is not the name of a variable; write: `key: ${NAME}`",
            ],
        ),
        (
            Swap(FILE, "${LOCAL_KEY}", "${LOCAL_KEY}\n    key_file: /run/x"),
            &[
                "providers.yaml:6:15: error: `key` and `key_file` are both there; write: one of them",
            ],
        ),
        (
            Swap(FILE, "/run/secrets/thinker", "secrets/thinker"),
            &[
                "providers.yaml:14:15: error: the path of a key file begins with `/`; write: `key_file: /run/secrets/provider`",
            ],
        ),
        (
            Swap(FILE, "/run/secrets/thinker", "${KEYS}/thinker"),
            &[
                "providers.yaml:14:15: error: the variable `KEYS` is not set; write: `${KEYS:-/run/secrets}` for a default, or set KEYS before the start",
            ],
        ),
        (Swap(FILE, "    key: ${LOCAL_KEY}\n", ""), &[]),
    ]);
}

#[test]
fn headers_are_headers_and_carry_no_keys() {
    let plain = "this cannot be the value of a header; write: plain ASCII on one line, 1 to 1024 characters";
    let long = format!("X-Team: {}", "x".repeat(1025));
    table(&[
        (
            Swap(FILE, "X-Team: market", "Authorization: market"),
            &[
                "providers.yaml:6:15: error: the header `Authorization` carries a key; write: `key: ${NAME}` of the provider: its dialect knows the header",
            ],
        ),
        (
            Swap(FILE, "X-Team: market", "x-api-key: market"),
            &[
                "providers.yaml:6:15: error: the header `x-api-key` carries a key; write: `key: ${NAME}` of the provider: its dialect knows the header",
            ],
        ),
        (
            Swap(FILE, "X-Team: market", "x-team: Bearer abc"),
            &[
                "providers.yaml:6:23: error: this looks like a key; write: `key: ${NAME}` of the provider",
            ],
        ),
        (
            Swap(FILE, "X-Team: market", "x-team: \"${TEAM}\""),
            &[
                "providers.yaml:6:23: error: variables are not filled in in a header; write: the value itself; a key as `key: ${NAME}`",
            ],
        ),
        (
            Swap(FILE, "X-Team: market", "Content-Type: text/html"),
            &[
                "providers.yaml:6:15: error: the header `Content-Type` is not the pack's to write; write: nothing",
            ],
        ),
        (
            Swap(FILE, "X-Team: market", "\"x team\": a"),
            &[
                "providers.yaml:6:15: error: `x team` is not the name of a header; write: letters, digits and `-`, for example `x-team`",
            ],
        ),
        (
            Swap(FILE, "X-Team: market", "x-team: Käse"),
            &[&format!("providers.yaml:6:23: error: {plain}")],
        ),
        (
            Swap(FILE, "X-Team: market", "x-team: \"a\\r\\nb: c\""),
            &[&format!("providers.yaml:6:23: error: {plain}")],
        ),
        (
            Swap(FILE, "X-Team: market", &long),
            &[&format!("providers.yaml:6:23: error: {plain}")],
        ),
        (
            Swap(FILE, "X-Team: market", "X-Team: market, x-team: shop"),
            &["providers.yaml:6:31: error: the header `x-team` is there twice; write: it once"],
        ),
    ]);
}

#[test]
fn numbers_stay_within_their_bounds() {
    table(&[
        (
            Swap(FILE, "max_tokens: 2048", "max_tokens: 0"),
            &["providers.yaml:7:26: error: `max_tokens` is 0; write: a number from 1 to 1000000"],
        ),
        (
            Swap(FILE, "max_tokens: 2048", "max_tokens: many"),
            &[
                "providers.yaml:7:26: error: this should be a whole number; write: a number from 1 to 1000000",
            ],
        ),
        (
            Swap(FILE, "temperature: 0.2", "temperature: 2.1"),
            &["providers.yaml:7:45: error: `temperature` is 2.1; write: a number from 0 to 2"],
        ),
        (
            Swap(FILE, "effort: low", "effort: Very Low"),
            &[
                "providers.yaml:7:58: error: `Very Low` is not a valid effort; write: `very_low` (a to z, 0 to 9 and _, beginning with a letter, at most 48 characters)",
            ],
        ),
        (
            Swap(FILE, "top_p: 0.9", "stream: false"),
            &[
                "providers.yaml:7:71: error: `stream` of a request is not the pack's to write; write: nothing",
            ],
        ),
        (
            Swap(FILE, "top_p: 0.9", "max_tokens: 9"),
            &[
                "providers.yaml:7:71: error: `max_tokens` of a request is not the pack's to write; write: `max_tokens` beside `extra`",
            ],
        ),
        (
            Swap(FILE, "\"big-1\":", "\"big 1\":"),
            &[
                "providers.yaml:8:14: error: `big 1` is not the name of a model; write: the vendor's name, without the provider and without spaces",
            ],
        ),
        (
            Swap(FILE, "thinking_tokens: 1024", "thinking_tokens: 4096"),
            &[
                "providers.yaml:15:49: error: `thinking_tokens` is 4096 and `max_tokens` is 4096: nothing is left for the answer; write: `max_tokens` that is larger: it counts both",
            ],
        ),
        (
            Swap(
                FILE,
                "key_file:",
                "models: {small: {max_tokens: 1000}}\n    key_file:",
            ),
            &[
                "providers.yaml:14:34: error: `thinking_tokens` is 1024 and `max_tokens` is 1000 for `small`: nothing is left for the answer; write: `max_tokens` that is larger: it counts both",
            ],
        ),
        (
            Swap(FILE, "connect_ms: 5000", "connect_ms: 0"),
            &["providers.yaml:9:28: error: `connect_ms` is 0; write: a number from 1 to 600000"],
        ),
        (
            Swap(FILE, "total_ms: 300000", "total_ms: 30000"),
            &[
                "providers.yaml:9:49: warning: `first_byte_ms` is 60000, longer than the whole answer may take; write: at most 30000, or a longer `total_ms`",
            ],
        ),
        (
            Swap(FILE, "attempts: 3", "attempts: 11"),
            &["providers.yaml:10:25: error: `attempts` is 11; write: a number from 1 to 10"],
        ),
        (
            Swap(FILE, "max_ms: 8000", "max_ms: 400"),
            &[
                "providers.yaml:10:37: error: `base_ms` is 500, longer than the longest pause; write: at most 400, or a longer `max_ms`",
            ],
        ),
    ]);
}

#[test]
fn a_model_whose_provider_is_not_there_is_told_wherever_it_is_named() {
    let all = "write: one of `anthropic`, `gemini`, `local`, `openai`, `openai_responses`, `scripted`, `thinker`";
    let unknown = |place: &str| format!("{place}: error: unknown provider `teleport`; {all}");
    let shop = "verticals/shop/agent.yaml";
    table(&[
        (
            Swap("pack.yaml", "\"scripted:big\"", "\"antropic:claude\""),
            &["pack.yaml:4:43: error: unknown provider `antropic`, did you mean `anthropic`?"],
        ),
        (
            Swap("pack.yaml", "\"scripted:big\"", "\"teleport:x\""),
            &[&unknown("pack.yaml:4:43")],
        ),
        (
            Swap(shop, "model: big", "model: teleport:x"),
            &[&unknown("verticals/shop/agent.yaml:7:8")],
        ),
        (
            Swap("orchestrator.yaml", "model: default", "model: teleport:x"),
            &[&unknown("orchestrator.yaml:5:8")],
        ),
        (
            Swap("routing.yaml", "use: local:small", "use: teleport:x"),
            &[&unknown("routing.yaml:5:10")],
        ),
        (
            Swap(
                "routing.yaml",
                "fallback: [big,",
                "fallback: [\"teleport:x\",",
            ),
            &[&unknown("routing.yaml:6:16")],
        ),
    ]);
    // A broken file may have the one that is meant.
    let changes = [
        Swap("pack.yaml", "\"scripted:big\"", "\"teleport:x\""),
        Swap(FILE, "dialect: anthropic", "dialekt: anthropic"),
    ];
    let told = told(&changes);
    assert_eq!(
        told,
        ["providers.yaml:12:5: error: unknown field `dialekt`, did you mean `dialect`?"]
    );
}

#[test]
fn a_built_in_provider_has_the_address_of_its_variable() {
    let base = |url: &'static str| {
        move |name: &str| match name {
            "ANTHROPIC_BASE_URL" => Some(url.to_owned()),
            name => vars(name),
        }
    };
    let report = check(&files(&[]), &base("http://127.0.0.1:9/"));
    let pack = report.pack.expect("good");
    assert_eq!(pack.providers["anthropic"].base_url, "http://127.0.0.1:9");
    assert_eq!(
        pack.providers["openai"].base_url,
        "https://api.openai.com/v1"
    );
    let report = check(&files(&[]), &base("nowhere"));
    let told: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    let wrong = "the url in the variable `ANTHROPIC_BASE_URL` does not begin with http:// or https://; write: `http://host:port` or `https://host`, with a path if there is one";
    assert_eq!(told, [format!("routing.yaml:6:21: error: {wrong}")]);
    let unused = files(&[Swap("routing.yaml", "\"anthropic:claude\"", "default")]);
    assert!(check(&unused, &base("nowhere")).pack.is_some());
}

#[test]
fn a_good_providers_file_has_everything_resolved() {
    let pack = check(&files(&[]), &vars).pack.expect("good");
    let local = &pack.providers["local"];
    assert_eq!(local.dialect, DialectName::OpenaiChat);
    assert_eq!(local.base_url, "http://127.0.0.1:8090/v1");
    assert_eq!(local.key, KeyRef::Variables(vec!["LOCAL_KEY".to_owned()]));
    let headers = [("x-team".to_owned(), "market".to_owned())];
    assert_eq!(local.headers, headers);
    let extra = serde_json::json!({"top_p": 0.9});
    let expected = ParamsDef {
        max_tokens: Some(8_192),
        temperature: Some(0.2),
        thinking_tokens: None,
        effort: Some("low".to_owned()),
        extra: extra.as_object().cloned().expect("an object"),
    };
    assert_eq!(local.params("big-1"), expected);
    assert_eq!(local.params("other").max_tokens, Some(2_048));
    let timeouts = local.timeouts;
    assert_eq!(
        (timeouts.connect_ms, timeouts.total_ms),
        (Some(5_000), Some(300_000))
    );
    let retries = local.retries;
    assert_eq!((retries.attempts, retries.base_ms), (Some(3), Some(500)));
    let thinker = &pack.providers["thinker"];
    assert_eq!(thinker.key, KeyRef::File("/run/secrets/thinker".to_owned()));
    let gemini = &pack.providers["gemini"].key;
    let names = ["GEMINI_API_KEY", "GOOGLE_API_KEY"].map(str::to_owned);
    assert_eq!(*gemini, KeyRef::Variables(names.to_vec()));
}

#[test]
fn s2_001_a_provider_that_is_used_needs_its_key() {
    let told = |changes: &[Change<'_>], set: &[&str]| -> Vec<String> {
        let pack = check(&files(changes), &vars).pack.expect("good");
        let vars = |name: &str| set.contains(&name).then(|| "sk-1".to_owned());
        let findings = keys(&pack, &vars);
        findings.iter().map(ToString::to_string).collect()
    };
    let local = "providers.yaml:5:10: error: `local` has no key: the variable `LOCAL_KEY` is not set; write: set LOCAL_KEY before the start, or another model";
    let claude = "routing.yaml:6:21: error: `anthropic` has no key: the variable `ANTHROPIC_API_KEY` is not set; write: set ANTHROPIC_API_KEY before the start, or another model";
    assert_eq!(told(&[], &[]), [local, claude]);
    assert_eq!(told(&[], &["LOCAL_KEY", "ANTHROPIC_API_KEY"]), [""; 0]);
    let gemini = "orchestrator.yaml:5:8: error: `gemini` has no key: the variable `GEMINI_API_KEY` or `GOOGLE_API_KEY` is not set; write: set GEMINI_API_KEY before the start, or another model";
    let changes = [
        Swap("orchestrator.yaml", "model: default", "model: gemini:flash"),
        Drop("routing.yaml"),
    ];
    assert_eq!(told(&changes, &[]), [gemini]);
    assert_eq!(told(&changes, &["GOOGLE_API_KEY"]), [""; 0]);
    let changes = [
        Swap("orchestrator.yaml", "model: default", "model: thinker:m"),
        Swap(FILE, "/run/secrets/thinker", "/nonexistent/thinker"),
        Drop("routing.yaml"),
    ];
    let file = "providers.yaml:14:15: error: `thinker` has no key: the key file `/nonexistent/thinker` cannot be read: No such file or directory (os error 2); write: the path of a file with the key and nothing else";
    assert_eq!(told(&changes, &[]), [file]);
}
