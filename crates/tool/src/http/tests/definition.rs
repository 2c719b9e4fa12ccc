//! The definition of a tool, and errors in it.

use super::*;
use crate::tool::Tool as _;

#[test]
fn tool_has_the_definition_of_the_pack() {
    let tool = build(
        &http(ToolMethod::Get, "https://api.example/{a}"),
        Some(2_000),
    )
    .expect("a tool");
    assert_eq!(
        (tool.name(), tool.description()),
        ("weather", "Tells the weather.")
    );
    assert_eq!(tool.tool_type(), ToolType::Http);
    assert_eq!(tool.timeout(), Some(Duration::from_secs(3)));
    assert_eq!(tool.status(), Some("looking"));
    assert!(tool.remember() && tool.approval());
    let tool = build(&http(ToolMethod::Get, "https://api.example/"), None).expect("a tool");
    assert_eq!(tool.timeout(), Some(TIMEOUT + MARGIN));
    for (name, reason) in [
        ("host", "set by the server itself"),
        ("Transfer-Encoding", "set by the server itself"),
        ("a b", "not the name of a header"),
    ] {
        let mut def = http(ToolMethod::Get, "https://api.example/");
        def.headers.push((name.into(), "x".into()));
        let message = build(&def, None).err().expect("a bad header");
        assert!(message.contains(reason), "{message}");
    }
    let mut def = http(ToolMethod::Get, "https://api.example/");
    def.headers.push(("accept".into(), "a\nb".into()));
    assert!(
        build(&def, None)
            .err()
            .expect("a bad header")
            .contains("accept")
    );
    assert!(
        build(&http(ToolMethod::Get, "https://{a}/"), None)
            .err()
            .expect("a host")
            .contains("url")
    );
}
