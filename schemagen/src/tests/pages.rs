//! The hand-written pages about the API agree with the document and the settings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use turnwire_event::body::bus::HandlerWarning;
use turnwire_event::body::session::SessionClosed;
use turnwire_event::body::turn::{TurnCancelled, TurnCompleted};
use turnwire_wire::openapi::operations;
use turnwire_wire::problem::Code;
use turnwire_wire::session::SessionCloseReason;

use super::read_json;

fn page(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(path);
    std::fs::read_to_string(path).expect("a page")
}

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn rest_page_lists_every_operation() {
    let page = page("rest.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let listed: BTreeSet<&str> = cells
        .flat_map(quoted)
        .filter(|name| name.contains(" /"))
        .collect();
    let all: Vec<String> = operations()
        .iter()
        .map(|operation| format!("{} {}", operation.method, operation.path))
        .collect();
    assert_eq!(listed, all.iter().map(String::as_str).collect());
}

#[test]
fn limits_have_the_defaults_of_their_settings() {
    let operations = page("operations.md");
    let defaults: BTreeMap<&str, &str> = operations
        .lines()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|line| {
            let mut quoted = quoted(line);
            Some((quoted.next()?, quoted.next()?))
        })
        .collect();
    let limits = page("limits.md");
    let mut compared = 0;
    for line in limits.lines().filter(|line| line.contains("` = `")) {
        let (before, after) = line.split_once("` = `").expect("a setting and its value");
        let setting = before.rsplit('`').next().expect("a setting");
        let value = after.split('`').next().expect("a value");
        assert_eq!(defaults.get(setting), Some(&value), "{setting}");
        compared += 1;
    }
    assert!(compared >= 15, "{compared}");
}

#[test]
fn limits_name_existing_problems_and_close_codes() {
    let limits = page("limits.md");
    let problems: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    let closes: Vec<&str> = SessionCloseReason::ALL
        .iter()
        .map(|close| close.name())
        .collect();
    for line in limits.lines() {
        for (index, part) in line.split('`').enumerate() {
            let before = line
                .split('`')
                .nth(index.wrapping_sub(1))
                .unwrap_or_default();
            let number = before
                .trim_end()
                .rsplit([' ', '('])
                .next()
                .unwrap_or_default();
            let is_name = index % 2 == 1;
            match number.parse::<u16>() {
                Ok(400..=599) if is_name => assert!(problems.contains(&part), "{part}"),
                Ok(1000..=1015) if is_name => assert!(closes.contains(&part), "{part}"),
                _ => {}
            }
        }
    }
}

/// The texts between backticks in the first column of the table below `head`.
fn first_column<'a>(page: &'a str, head: &str) -> BTreeSet<&'a str> {
    let lines = page.lines().skip_while(|line| !line.starts_with(head));
    let rows = lines.skip(2).take_while(|line| line.starts_with("| "));
    rows.filter_map(|row| row.split('|').nth(1))
        .flat_map(quoted)
        .collect()
}

fn set<'a>(texts: &[&'a str]) -> BTreeSet<&'a str> {
    texts.iter().copied().collect()
}

#[test]
fn pages_list_every_reason_of_an_end() {
    let rest = page("rest.md");
    let of_end = |end: &str| first_column(&rest, &format!("| `reason` of `{end}`"));
    assert_eq!(of_end("turn.completed"), set(TurnCompleted::REASONS));
    assert_eq!(of_end("turn.cancelled"), set(TurnCancelled::REASONS));
    let session = page("wires/session.md");
    let sentence = session.split("`turn.completed.reason` ").nth(1);
    let sentence = sentence.and_then(|text| text.split("\n\n").next());
    let listed: BTreeSet<&str> = quoted(sentence.expect("a sentence")).collect();
    assert_eq!(listed, set(TurnCompleted::REASONS));
}

#[test]
fn schemas_list_every_reason_that_the_server_gives() {
    let schema = read_json("schema/event.json");
    for (payload, reasons) in [
        ("HandlerWarning", HandlerWarning::REASONS),
        ("SessionClosed", SessionClosed::REASONS),
        ("TurnCompleted", TurnCompleted::REASONS),
        ("TurnCancelled", TurnCancelled::REASONS),
    ] {
        let about = &schema["$defs"][payload]["properties"]["reason"]["description"];
        let about = about
            .as_str()
            .unwrap_or_else(|| panic!("{payload}: {about}"));
        assert_eq!(
            quoted(about).collect::<BTreeSet<_>>(),
            set(reasons),
            "{payload}"
        );
    }
}

#[test]
fn members_of_events_have_a_meaning_or_speak_for_themselves() {
    // A link leads to a part that is described; these names say what the value is.
    let plain = ["sub_agent_id", "text", "tool_name", "type"];
    let page = page("events.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let unexplained = rows.filter(|row| {
        let mut cells = row.split(" | ");
        let name = cells.next().and_then(|cell| quoted(cell).next());
        let is_link = cells.next().is_some_and(|value| value.contains("](#"));
        row.ends_with("|  |") && !is_link && !name.is_some_and(|name| plain.contains(&name))
    });
    assert_eq!(unexplained.collect::<Vec<_>>(), [""; 0]);
}
