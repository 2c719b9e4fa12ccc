//! Precedence, defaults, and the exact words of every complaint.

use super::*;

type Said<'a> = (
    &'a str,
    &'a [(&'a str, &'a str)],
    &'a [(&'static str, &'a str)],
);

fn try_load((file, env, flags): Said<'_>) -> (PathBuf, Result<ServerConfig, ConfigError>) {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join(FILE_NAME), file).expect("the file is written");
    let sources = SettingSources {
        flags: flags
            .iter()
            .map(|(key, value)| SettingFlag {
                name: "--flag",
                key,
                value: (*value).to_owned(),
            })
            .collect(),
        env: env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        config: None,
        home: Some(home.path().to_owned()),
    };
    (home.path().to_owned(), ServerConfig::load(&sources))
}

fn load(file: &str, env: &[(&str, &str)], flags: &[(&'static str, &str)]) -> ServerConfig {
    try_load((file, env, flags)).1.expect("a config")
}

/// The complaint, with the folder of the file cut off.
fn refused(file: &str, env: &[(&str, &str)], flags: &[(&'static str, &str)]) -> String {
    let (home, loaded) = try_load((file, env, flags));
    let text = loaded.expect_err("refused").to_string();
    text.replace(&format!("{}/", home.display()), "")
}

// S3-102, D-43
#[test]
fn defaults_match_the_documents() {
    let config = load("", &[], &[]);
    assert_eq!(config.listen.address.to_string(), "127.0.0.1:8421");
    assert_eq!(config.stream.snapshot_messages, 50);
    assert_eq!(config.stream.replay_max, 10_000);
    assert_eq!(config.stream.queue_max, 1_000);
    assert_eq!(config.stream.ping_ms, 30_000);
    assert_eq!(config.stream.ping_misses, 3);
    assert_eq!(config.stream.subscribe_wait_ms, 10_000);
    assert_eq!(config.stream.token_ttl_ms, 60_000);
    assert_eq!(config.turn.timeout_ms, 600_000);
    assert_eq!(config.http.body_max_bytes, 1 << 20);
    assert_eq!(config.session.messages_page, 50);
    assert_eq!(config.session.messages_page_max, 200);
    assert_eq!(config.store.durability, store::DurabilitySetting::Full);
    assert_eq!(config.store.retention_s, 30 * 24 * 3600);
    assert_eq!(config.script.file, None);
    assert!(
        config
            .entries()
            .iter()
            .all(|entry| entry.origin == SettingOrigin::Default && !entry.help.is_empty())
    );
    let keys: usize = TABLES.iter().map(|table| table.keys.len()).sum();
    assert_eq!(config.entries().len(), keys);
}

#[test]
fn flag_beats_environment_beats_file_beats_default() {
    let file = "stream:\n  queue_max: 1\n  ping_ms: 100\n  ping_misses: 5\n";
    let env = [
        ("TURNWIRE_STREAM_QUEUE_MAX", "2"),
        ("TURNWIRE_STREAM_PING_MS", "200"),
    ];
    let config = load(file, &env, &[("stream.queue_max", "3")]);
    let stream = &config.stream;
    assert_eq!(
        (
            stream.queue_max,
            stream.ping_ms,
            stream.ping_misses,
            stream.replay_max
        ),
        (3, 200, 5, 10_000)
    );
    let origin = |key: &str| {
        let entries = config.entries().iter();
        let mut found = entries.filter(|entry| entry.section == "stream" && entry.key == key);
        let text = found.next().expect("an entry").origin.to_string();
        text.rsplit('/').next().unwrap_or_default().to_owned()
    };
    assert_eq!(origin("queue_max"), "--flag");
    assert_eq!(origin("ping_ms"), "TURNWIRE_STREAM_PING_MS");
    assert_eq!(origin("ping_misses"), "turnwire.yaml:4:16");
    assert_eq!(origin("replay_max"), "default");
}

#[test]
fn unknown_setting_is_named_at_its_place() {
    assert_eq!(
        refused("turn:\n  timeout_ms: 20\n  timeout: 5\n", &[], &[]),
        "turnwire.yaml:3:3: unknown key in section turn: \"timeout\"; there are: timeout_ms, idle_ms, stop_wait_ms, running_max, running_max_per_owner, queue_max, queued_max, queued_max_per_owner, inputs_bytes_max, inputs_bytes_max_per_owner, message_blocks_max, key_ttl_s, jobs_max, dm_types"
    );
    assert_eq!(
        refused("strem:\n  ping_ms: 5\n", &[], &[]),
        "turnwire.yaml:1:1: unknown section \"strem\"; there are: listen, server, auth, http, \
         stream, wire, turn, session, quota, store, script, pack, model, dial, relay, tool, log"
    );
    assert_eq!(
        refused("", &[("TURNWIRE_LISTEN_PORT", "1")], &[]),
        "TURNWIRE_LISTEN_PORT: there is no setting listen.port; section listen has: address, \
         drain_ms"
    );
    assert_eq!(
        refused("", &[], &[("turn.timeout", "1")]),
        "--flag: there is no setting turn.timeout; section turn has: timeout_ms, idle_ms, stop_wait_ms, running_max, running_max_per_owner, queue_max, queued_max, queued_max_per_owner, inputs_bytes_max, inputs_bytes_max_per_owner, message_blocks_max, key_ttl_s, jobs_max, dm_types"
    );
}

#[test]
fn invalid_value_is_refused_with_valid_ones() {
    assert_eq!(
        refused("stream:\n  queue_max: 0\n", &[], &[]),
        "turnwire.yaml:2:14: stream.queue_max cannot be \"0\"; expected a whole number from 1 to \
         1000000"
    );
    assert_eq!(
        refused("", &[("TURNWIRE_STREAM_PING_MS", "30s")], &[]),
        "TURNWIRE_STREAM_PING_MS: stream.ping_ms cannot be \"30s\"; expected a whole number from \
         10 to 3600000"
    );
    assert_eq!(
        refused("store:\n  durability: maybe\n", &[], &[]),
        "turnwire.yaml:2:15: store.durability cannot be \"maybe\"; expected full or relaxed"
    );
    assert_eq!(
        refused("", &[], &[("listen.address", "0.0.0.0:8421")]),
        "--flag: listen.address cannot be \"0.0.0.0:8421\"; expected a loopback address such as \
         127.0.0.1:8421 while auth.mode is none: requests are not authenticated, so the server must \
         not be reachable from other machines"
    );
    assert_eq!(
        refused("", &[], &[("listen.address", "8421")]),
        "--flag: listen.address cannot be \"8421\"; expected an IP address and a port, such as \
         127.0.0.1:8421"
    );
    assert_eq!(
        refused("session:\n  messages_page: 500\n", &[], &[]),
        "turnwire.yaml:2:18: session.messages_page cannot be \"500\"; expected at most \
         session.messages_page_max, which is 200"
    );
    for bad in ["-1", "1.5", "", " 1", "18446744073709551616", "١"] {
        let text = refused("", &[("TURNWIRE_TURN_TIMEOUT_MS", bad)], &[]);
        assert!(
            text.ends_with("expected a whole number from 10 to 86400000"),
            "{text}"
        );
    }
}

#[test]
fn non_config_file_is_refused_at_its_place() {
    for (file, message) in [
        (
            "stream: 5\n",
            "turnwire.yaml:1:9: section stream must be `key: value` pairs",
        ),
        (
            "stream:\n  ping_ms: [1]\n",
            "turnwire.yaml:2:12: stream.ping_ms must be a single value",
        ),
        (
            "stream:\n  ping_ms: 20\n  ping_ms: 30\n",
            "turnwire.yaml:3:3: the key `ping_ms` is there twice",
        ),
    ] {
        assert_eq!(refused(file, &[], &[]), message);
    }
}

#[test]
fn files_may_be_empty_absent_or_partial() {
    for file in ["", "# nothing\n", "stream:\n", "stream:\n  ping_ms:\n"] {
        assert_eq!(load(file, &[], &[]).stream.ping_ms, 30_000, "{file:?}");
    }
    let nowhere = SettingSources {
        home: Some("/nonexistent/turnwire".into()),
        ..SettingSources::default()
    };
    assert!(ServerConfig::load(&nowhere).is_ok());
    let named = SettingSources {
        config: Some("/nonexistent/t.yaml".into()),
        ..nowhere
    };
    let text = ServerConfig::load(&named)
        .expect_err("no such file")
        .to_string();
    assert!(
        text.starts_with("/nonexistent/t.yaml: the config file cannot be read: No such file"),
        "{text}"
    );
}

// D-73
#[test]
fn home_comes_from_flag_variable_or_user() {
    let home = |home: Option<&str>, env: &[(&str, &str)]| {
        let sources = SettingSources {
            home: home.map(PathBuf::from),
            env: env
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            ..SettingSources::default()
        };
        ServerConfig::load(&sources).map(|config| config.home)
    };
    let both = [("TURNWIRE_HOME", "/t"), ("HOME", "/u")];
    assert_eq!(home(Some("/f"), &both).expect("a home"), Path::new("/f"));
    assert_eq!(home(None, &both).expect("a home"), Path::new("/t"));
    assert_eq!(
        home(None, &both[1..]).expect("a home"),
        Path::new("/u/.turnwire")
    );
    assert_eq!(
        home(None, &[]).expect_err("none").to_string(),
        "there is no home directory to keep data in; set TURNWIRE_HOME"
    );
}

#[test]
fn variables_of_other_programs_are_ignored() {
    let env = [
        ("TURNWIRE_HOME", "/nonexistent"),
        ("TURNWIRE_URL", "http://x"),
        ("TURNWIRE_BENCH_SECONDS", "5"),
        ("STREAM_PING_MS", "1"),
        ("TURNWIRE_LOG", "debug"),
    ];
    let config = load("", &env, &[]);
    assert_eq!(config.log.filter, "debug");
    assert_eq!(config.stream.ping_ms, 30_000);
    let more = [("TURNWIRE_LOG", "debug"), ("TURNWIRE_LOG_FILTER", "trace")];
    assert_eq!(load("", &more, &[]).log.filter, "trace");
}

#[test]
fn cors_origins_are_exact_and_never_wildcard() {
    assert_eq!(load("", &[], &[]).http.cors_origins, []);
    let file = "http:\n  cors_origins: http://localhost:3000, https://App.example.com:443\n";
    let listed = |config: ServerConfig| -> Vec<String> {
        let sites = config.http.cors_origins.iter();
        sites.map(ToString::to_string).collect()
    };
    assert_eq!(
        listed(load(file, &[], &[])),
        ["http://localhost:3000", "https://app.example.com"]
    );
    let env = [("TURNWIRE_HTTP_CORS_ORIGINS", "")];
    assert_eq!(listed(load(file, &env, &[])), [""; 0]);
    for bad in ["'*'", "'http://a, *'"] {
        let text = refused(&format!("http:\n  cors_origins: {bad}\n"), &[], &[]);
        assert!(
            text.starts_with("turnwire.yaml:2:17: http.cors_origins cannot be \"")
                && text
                    .contains("expected exact origins and not *: requests are not authenticated"),
            "{text}"
        );
    }
    assert_eq!(
        refused("http:\n  cors_origins: http://a/\n", &[], &[]),
        "turnwire.yaml:2:17: http.cors_origins cannot be \"http://a/\"; expected origins between \
         commas, each scheme://host or scheme://host:port without a path, such as \
         http://localhost:3000"
    );
    let many = vec!["http://a"; 65].join(",");
    let text = refused("", &[("TURNWIRE_HTTP_CORS_ORIGINS", &many)], &[]);
    assert!(text.ends_with("expected at most 64 origins"), "{text}");
}

#[test]
fn retry_pauses_respect_their_bound() {
    let text = refused("model:\n  retry_base_ms: 9000\n", &[], &[]);
    assert_eq!(
        text,
        "turnwire.yaml:2:18: model.retry_base_ms cannot be \"9000\"; expected at most \
         model.retry_max_ms, which is 8000"
    );
    let env = [
        ("TURNWIRE_MODEL_RETRY_MAX_MS", "9000"),
        ("TURNWIRE_MODEL_RECORD", "/tmp/t"),
    ];
    let config = load("model:\n  retry_base_ms: 9000\n", &env, &[]);
    assert_eq!(config.model.retry_base_ms, 9_000);
    assert_eq!(config.model.record.as_deref(), Some(Path::new("/tmp/t")));
}

#[test]
fn recording_a_scripted_model_is_refused() {
    let flags = [("script.file", "s.yaml"), ("model.record", "c.jsonl")];
    let told = "--flag: model.record cannot be \"c.jsonl\"; expected none beside script.file: where a \
                script speaks, no provider streams anything to record; leave one of the two out";
    assert_eq!(refused("", &[], &flags), told);
    let with_pack = [flags[0], flags[1], ("pack.dir", "p")];
    assert_eq!(refused("", &[], &with_pack), told);
    load("", &[], &[flags[1], ("pack.dir", "p")]);
}

#[test]
fn owner_never_has_all() {
    for (per_owner, total, share) in [
        (2_500, 10_000, 2_500),
        (10_000, 10_000, 7_500),
        (50, 20, 15),
        (3, 5, 3),
        (9, 2, 1),
        (9, 1, 1),
    ] {
        assert_eq!(
            owner_share(per_owner, total),
            share,
            "{per_owner} of {total}"
        );
    }
}

#[test]
fn quotas_are_absent_or_above_zero() {
    use setting::optional_micro_usd as usd;
    let number = setting::optional_number::<u64>(1..=10);
    assert_eq!((number(""), number("10")), (Ok(None), Ok(Some(10))));
    for bad in ["0", "11", "-1", "1.5", " 1"] {
        assert!(number(bad).is_err(), "{bad}");
    }
    for (text, micros) in [
        ("", None),
        ("2.50", Some(2_500_000)),
        ("3", Some(3_000_000)),
        ("0.000001", Some(1)),
        ("999999999.999999", Some(999_999_999_999_999)),
    ] {
        assert_eq!(usd(text), Ok(micros), "{text}");
    }
    for bad in [
        "0",
        "0.0",
        "-1",
        "1e3",
        ".5",
        "1.",
        "1.1234567",
        "1,5",
        "NaN",
        "1000000000",
    ] {
        assert!(usd(bad).is_err(), "{bad}");
    }
}
