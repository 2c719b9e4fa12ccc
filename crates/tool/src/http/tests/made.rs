//! A tool as its pack says it is, or why there is none.

use super::*;

#[test]
fn what_a_pack_says_of_it_is_what_it_is() {
    let tool = made(
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
    let tool = made(&http(ToolMethod::Get, "https://api.example/"), None).expect("a tool");
    assert_eq!(tool.timeout(), Some(WAIT + MARGIN));
    for (name, why) in [
        ("host", "set by the server itself"),
        ("Transfer-Encoding", "set by the server itself"),
        ("a b", "not the name of a header"),
    ] {
        let mut def = http(ToolMethod::Get, "https://api.example/");
        def.headers.push((name.into(), "x".into()));
        let told = made(&def, None).err().expect("a bad header");
        assert!(told.contains(why), "{told}");
    }
    let mut def = http(ToolMethod::Get, "https://api.example/");
    def.headers.push(("accept".into(), "a\nb".into()));
    assert!(
        made(&def, None)
            .err()
            .expect("a bad header")
            .contains("accept")
    );
    assert!(
        made(&http(ToolMethod::Get, "https://{a}/"), None)
            .err()
            .expect("a host")
            .contains("url")
    );
}
