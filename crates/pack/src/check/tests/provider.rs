//! Mistakes in `providers.yaml`.

use super::*;
use crate::pack::provider::{ApiKeySource, DialectName, ParamsDef};

const FILE: &str = "providers.yaml";

#[test]
fn provider_dialect_and_base_url_are_checked() {
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
            &[
                "providers.yaml:3:5: error: `dialect` is missing; write: `dialect: …` with one of `anthropic`, `openai_chat`, `openai_responses`, `gemini`",
            ],
        ),
        (
            Swap(FILE, "    base_url: \"${LLM}\"\n", ""),
            &[
                "providers.yaml:3:5: error: `base_url` is missing; write: `base_url: …` (the base URL, in the form that the vendor's own client expects; `${NAME}` and `${NAME:-default}` are filled in from the environment)",
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
                "providers.yaml:12:5: error: `dialect` is missing; write: `dialect: …` with one of `anthropic`, `openai_chat`, `openai_responses`, `gemini`",
            ],
        ),
        (
            Swap(FILE, "  thinker:", "  Think-er:"),
            &[
                "providers.yaml:11:3: error: `Think-er` is not a valid name in `providers`; write: `think_er` (a to z, 0 to 9 and _, beginning with a letter, at most 48 characters)",
            ],
        ),
        (
            Swap(FILE, "  thinker:", "  scripted:"),
            &[
                "providers.yaml:11:3: error: `scripted` is built in and plays scripts; write: another name",
            ],
        ),
        (
            Swap(FILE, "  thinker:", "  cassette:"),
            &[
                "providers.yaml:11:3: error: `cassette` is built in and plays cassettes; write: another name",
            ],
        ),
        (
            Swap(FILE, "  thinker:", "  local:"),
            &["providers.yaml:11:3: error: the key `local` is there twice; write: each key once"],
        ),
    ]);
}

#[test]
fn malformed_base_url_is_refused() {
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
fn written_key_is_refused_and_never_repeated() {
    let literal = "a key is never written into a pack, only the variable that has it";
    let told_of = |key: &str| reported(&[Swap(FILE, "${LOCAL_KEY}", key)]);
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
fn unknown_provider_of_a_model_is_reported() {
    let all = "write: one of `anthropic`, `cassette`, `gemini`, `local`, `openai`, `openai_responses`, `scripted`, `thinker`";
    let unknown = |position: &str| format!("{position}: error: unknown provider `teleport`; {all}");
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
        Swap(FILE, "dialect: anthropic", "dialect: [anthropic]"),
    ];
    let reported = reported(&changes);
    let [only] = &reported[..] else {
        panic!("{reported:?}");
    };
    assert!(only.starts_with("providers.yaml:12:14: error: "), "{only}");
}

#[test]
fn builtin_provider_takes_its_url_from_a_variable() {
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
    let reported: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    let mismatches = "the url in the variable `ANTHROPIC_BASE_URL` does not begin with http:// or https://; write: `http://host:port` or `https://host`, with a path if there is one";
    assert_eq!(
        reported,
        [format!("routing.yaml:6:21: error: {mismatches}")]
    );
    let unused = files(&[Swap("routing.yaml", "\"anthropic:claude\"", "default")]);
    assert!(check(&unused, &base("nowhere")).pack.is_some());
}

#[test]
fn good_providers_file_is_fully_read() {
    let pack = check(&files(&[]), &vars).pack.expect("good");
    let local = &pack.providers["local"];
    assert_eq!(local.dialect, DialectName::OpenaiChat);
    assert_eq!(local.base_url, "http://127.0.0.1:8090/v1");
    assert_eq!(
        local.key,
        ApiKeySource::Variables(vec!["LOCAL_KEY".to_owned()])
    );
    let headers = [("x-team".to_owned(), "market".to_owned())];
    assert_eq!(local.headers, headers);
    let extra = serde_json::json!({"top_p": 0.9});
    let expected = ParamsDef {
        max_tokens: Some(2_048),
        temperature: Some(0.2),
        thinking_tokens: None,
        effort: Some("low".to_owned()),
        extra: extra.as_object().cloned().expect("an object"),
    };
    assert_eq!(local.params, expected);
    let big = ParamsDef {
        max_tokens: Some(8_192),
        ..ParamsDef::default()
    };
    assert_eq!(local.models["big-1"], big);
    let positions = [
        ("local".to_owned(), (5, 10)),
        ("thinker".to_owned(), (14, 15)),
    ];
    assert_eq!(pack.key_positions, BTreeMap::from(positions));
    let timeouts = local.timeouts;
    assert_eq!(
        (timeouts.connect_ms, timeouts.total_ms),
        (Some(5_000), Some(300_000))
    );
    let retries = local.retries;
    assert_eq!((retries.attempts, retries.base_ms), (Some(3), Some(500)));
    let thinker = &pack.providers["thinker"];
    assert_eq!(
        thinker.key,
        ApiKeySource::File("/run/secrets/thinker".to_owned())
    );
    let gemini = &pack.providers["gemini"].key;
    let names = ["GEMINI_API_KEY", "GOOGLE_API_KEY"].map(str::to_owned);
    assert_eq!(*gemini, ApiKeySource::Variables(names.to_vec()));
}

#[test]
fn unknown_cassette_is_reported() {
    let played = |name: &str| {
        let model = format!("model: \"cassette:{name}\"");
        let model = Swap("orchestrator.yaml", "model: default", &model);
        let result = check(
            &files(&[model, Write("cassettes/refund.jsonl", "{}\n")]),
            &vars,
        );
        result
            .findings
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(played("refund"), [""; 0]);
    assert_eq!(
        played("refnd"),
        ["orchestrator.yaml:5:8: error: unknown cassette `refnd`, did you mean `refund`?"]
    );
    table(&[(
        Swap(
            "orchestrator.yaml",
            "model: default",
            "model: cassette:refund",
        ),
        &[
            "orchestrator.yaml:5:8: error: unknown cassette `refund`: the pack has none; write: it as `cassettes/refund.jsonl`",
        ],
    )]);
    let pack = check(&files(&[Write("cassettes/refund.jsonl", "{}\n")]), &vars).pack;
    let cassettes = pack.expect("good").cassettes;
    assert_eq!(cassettes, [("refund".to_owned(), "{}\n".to_owned())]);
}
