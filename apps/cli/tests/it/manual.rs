//! `turnwire completions`, `turnwire man` and `turnwire config show`: what the command knows of
//! itself, against what it can do.

use std::process::{Command, Output};

use serde_json::Value;

fn turnwire(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_turnwire"))
        .args(args)
        .env_remove("TURNWIRE_HOME")
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// The commands that `--help` lists.
fn commands() -> Vec<String> {
    let help = turnwire(&["--help"]);
    let help = text(&help.stdout).to_owned();
    let list = help.split("Commands:\n").nth(1).expect("a list");
    let list = list.lines().take_while(|line| !line.is_empty());
    let name = |line: &str| line.split_whitespace().next().expect("a name").to_owned();
    list.map(name).filter(|name| name != "help").collect()
}

#[test]
fn completions_know_every_command_in_every_shell() {
    let commands = commands();
    assert!(commands.contains(&"replay".to_owned()), "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = turnwire(&["completions", shell]);
        assert_eq!(done.status.code(), Some(0), "{shell}");
        for command in &commands {
            assert!(
                text(&done.stdout).contains(command.as_str()),
                "{shell} {command}"
            );
        }
    }
    assert_eq!(turnwire(&["completions", "cmd.exe"]).status.code(), Some(2));
}

#[test]
fn manual_has_a_page_for_every_command() {
    let page = turnwire(&["man"]);
    assert!(text(&page.stdout).contains(".TH turnwire 1"));
    let dir = tempfile::tempdir().expect("a folder");
    let pages = dir.path().join("man1");
    let done = turnwire(&["man", pages.to_str().expect("text")]);
    assert_eq!((done.status.code(), done.stdout.len()), (Some(0), 0));
    for command in commands() {
        assert!(
            text(&page.stdout).contains(&format!("turnwire\\-{command}(1)")),
            "{command}"
        );
        let page = pages.join(format!("turnwire-{command}.1"));
        let page = std::fs::read_to_string(page).expect("a page");
        assert!(page.contains("Examples:"), "{page}");
    }
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("written");
    let done = turnwire(&["man", file.to_str().expect("text")]);
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).starts_with("turnwire: writing the manual into "));
}

#[test]
fn config_and_config_show_print_the_same() {
    let dir = tempfile::tempdir().expect("a folder");
    let home = dir.path().to_str().expect("text");
    let file = "http: {header_max_bytes: 20000}\n";
    std::fs::write(dir.path().join("turnwire.yaml"), file).expect("written");
    let args = ["--home", home, "--listen", "127.0.0.1:9"];
    let plain = turnwire(&[&["config"], args.as_slice()].concat());
    let shown = turnwire(&[&["config", "show"], args.as_slice()].concat());
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    assert_eq!(text(&plain.stdout), text(&shown.stdout));
    assert!(text(&shown.stdout).contains("\nlisten.address = 127.0.0.1:9  (--listen)\n    "));

    let json = turnwire(&[&["config", "show", "--json"], args.as_slice()].concat());
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let settings = json["settings"].as_array().expect("a list");
    let help = |setting: &Value| {
        setting["help"]
            .as_str()
            .is_some_and(|help| !help.is_empty())
    };
    assert!(settings.len() > 10 && settings.iter().all(help), "{json}");
    let said = |name: &str| settings.iter().find(|s| s["setting"] == name).expect(name);
    assert_eq!(said("listen.address")["from"], "--listen");
    let from_file = said("http.header_max_bytes");
    assert_eq!(from_file["value"], "20000");
    assert!(
        from_file["from"]
            .as_str()
            .is_some_and(|from| from.contains("turnwire.yaml"))
    );

    std::fs::write(dir.path().join("turnwire.yaml"), "http: {speed: 7}\n").expect("written");
    let bad = turnwire(&["config", "show", "--home", home]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(
        text(&bad.stderr).contains("turnwire.yaml:1"),
        "{}",
        text(&bad.stderr)
    );
}

/// The flags in the lines of `page` that run a command: command, flag.
fn flags_in(page: &str) -> Vec<(String, String)> {
    let lines = page.lines().filter_map(|line| {
        let words = line.trim().strip_prefix("turnwire ")?;
        let words = words.split("  ").next()?;
        // What follows belongs to another program.
        let words = words.split(['|', '#']).next()?;
        let (command, words) = words.split_once(' ')?;
        let words = words.split([' ', '[', ']', '=', '`']);
        let flags = words.filter(|word| word.starts_with("--"));
        let flags = flags.map(|flag| (command.to_owned(), flag.to_owned()));
        Some(flags.collect::<Vec<_>>())
    });
    lines.flatten().collect()
}

#[test]
fn documents_and_help_use_flags_that_the_help_shows() {
    let help = |command: &str| {
        // Their first commands have the flags.
        let more = match command {
            "retention" => Some("confirm"),
            "token" => Some("create"),
            _ => None,
        };
        let words: Vec<&str> = [Some(command), more, Some("--help")]
            .into_iter()
            .flatten()
            .collect();
        text(&turnwire(&words).stdout).to_owned()
    };
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut pages = vec![include_str!("../../../../README.md").to_owned()];
    for entry in std::fs::read_dir(docs).expect("documents") {
        let path = entry.expect("a document").path();
        if path.extension().is_some_and(|end| end == "md") {
            pages.push(std::fs::read_to_string(path).expect("text"));
        }
    }
    pages.extend(commands().iter().map(|command| help(command)));
    let mut flags: Vec<(String, String)> = pages.iter().flat_map(|page| flags_in(page)).collect();
    flags.sort();
    flags.dedup();
    assert!(flags.len() > 20, "{flags:?}");
    let record = ("record".to_owned(), "--home".to_owned());
    assert!(flags.contains(&record), "{flags:?}");
    let is_unknown = |(command, flag): &&(String, String)| !help(command).contains(flag.as_str());
    let unknown: Vec<_> = flags.iter().filter(is_unknown).collect();
    assert_eq!(unknown, Vec::<&(String, String)>::new());
}
